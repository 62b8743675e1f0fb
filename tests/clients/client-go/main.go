// Client-go against pintle: the typed, dynamic, metadata, discovery and scale clients, informers, leader election, the
// REST mapper, server-side apply, and the errors that it knows.
package main

import (
	"context"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"pintle.test/client-go/cases"
)

const protobuf = "application/vnd.kubernetes.protobuf"

var (
	boats    = schema.GroupVersionResource{Group: "harbor.example.com", Version: "v1", Resource: "boats"}
	boatKind = schema.GroupVersionKind{Group: "harbor.example.com", Version: "v1", Kind: "Boat"}
)

func main() {
	os.Exit(cases.Run(slices.Concat(
		definitionCases, typedCases, dynamicCases, metadataCases, discoveryCases, informerCases, leaderCases,
		expiredCases, applyCases, errorCases, goneCases,
	)))
}

// config is that of the kubeconfig which the harness passes, without client-go's own limit on requests per second.
func config() *rest.Config {
	made := cases.Get(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	made.QPS = -1
	return made
}

func typed() *kubernetes.Clientset { return cases.Get(kubernetes.NewForConfig(config())) }

func dynamics() *dynamic.DynamicClient { return cases.Get(dynamic.NewForConfig(config())) }

// namespace makes one that a case has for itself.
func namespace(ctx context.Context) string {
	asked := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "case-"}}
	return cases.Get(typed().CoreV1().Namespaces().Create(ctx, asked, metav1.CreateOptions{})).Name
}

// next waits for an event of a type on a watch, over bookmarks.
func next(ctx context.Context, from watch.Interface, want watch.EventType) watch.Event {
	for {
		select {
		case <-ctx.Done():
			panic("no event " + string(want) + " came")
		case event, open := <-from.ResultChan():
			cases.That(open, "the watch ended before %s", want)
			if event.Type == watch.Bookmark && want != watch.Bookmark {
				continue
			}
			cases.That(event.Type == want, "event %s %v came, not %s", event.Type, event.Object, want)
			return event
		}
	}
}

var definitionCases = []cases.Case{
	{Name: "a definition is created, established and found again", Run: func(ctx context.Context) {
		client := cases.Get(apiextensions.NewForConfig(config())).ApiextensionsV1().CustomResourceDefinitions()
		var asked apiextensionsv1.CustomResourceDefinition
		cases.Must(yaml.UnmarshalStrict(cases.Get(os.ReadFile(os.Getenv("DEFINITION"))), &asked))
		watching := cases.Get(client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + asked.Name}))
		defer watching.Stop()
		cases.Get(client.Create(ctx, &asked, metav1.CreateOptions{}))
		next(ctx, watching, watch.Added)
		cases.Eventually(ctx, func() string {
			found := cases.Get(client.Get(ctx, asked.Name, metav1.GetOptions{}))
			for _, condition := range found.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return ""
				}
			}
			return "the definition is not established"
		})
	}},
}

var goneCases = []cases.Case{
	{Name: "a definition is deleted, and its objects with it", Run: func(ctx context.Context) {
		client := cases.Get(apiextensions.NewForConfig(config())).ApiextensionsV1().CustomResourceDefinitions()
		name := boats.GroupResource().String()
		watching := cases.Get(dynamics().Resource(boats).Watch(ctx, metav1.ListOptions{}))
		defer watching.Stop()
		boat := cases.Get(dynamics().Resource(boats).Namespace(namespace(ctx)).
			Create(ctx, newBoat("last", 1), metav1.CreateOptions{}))
		cases.Must(client.Delete(ctx, name, metav1.DeleteOptions{}))
		for event := range watching.ResultChan() {
			if event.Type == watch.Deleted && nameOf(event.Object) == boat.GetName() {
				break
			}
		}
		cases.Eventually(ctx, func() string {
			if _, err := client.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return "the definition is still there"
			}
			return ""
		})
	}},
}
