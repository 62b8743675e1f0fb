// Tests of client-go with Pintle: the typed, dynamic, metadata, discovery and scale clients, informers, leader election, the
// REST mapper, server-side apply, and errors.
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
		createCRDCases, typedCases, dynamicCases, metadataCases, discoveryCases, informerCases, leaderCases,
		expiredCases, applyCases, errorCases, deleteCRDCases,
	)))
}

// config returns the configuration of the harness's kubeconfig, without client-go's limit of requests per second.
func config() *rest.Config {
	config := cases.Must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	config.QPS = -1
	return config
}

func typedClient() *kubernetes.Clientset { return cases.Must(kubernetes.NewForConfig(config())) }

func dynamicClient() *dynamic.DynamicClient { return cases.Must(dynamic.NewForConfig(config())) }

// newNamespace creates a namespace for one case and returns its name.
func newNamespace(ctx context.Context) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "case-"}}
	return cases.Must(typedClient().CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})).Name
}

// nextEvent returns the next event of a watch, which must have the wanted type. It skips bookmarks.
func nextEvent(ctx context.Context, watcher watch.Interface, want watch.EventType) watch.Event {
	for {
		select {
		case <-ctx.Done():
			panic("timeout: no event " + string(want))
		case event, open := <-watcher.ResultChan():
			cases.True(open, "the watch ended before %s", want)
			if event.Type == watch.Bookmark && want != watch.Bookmark {
				continue
			}
			cases.True(event.Type == want, "got event %s %v, want %s", event.Type, event.Object, want)
			return event
		}
	}
}

var createCRDCases = []cases.Case{
	{Name: "a CRD is created and becomes established", Run: func(ctx context.Context) {
		client := cases.Must(apiextensions.NewForConfig(config())).ApiextensionsV1().CustomResourceDefinitions()
		var crd apiextensionsv1.CustomResourceDefinition
		cases.NoError(yaml.UnmarshalStrict(cases.Must(os.ReadFile(os.Getenv("DEFINITION"))), &crd))
		watcher := cases.Must(client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crd.Name}))
		defer watcher.Stop()
		cases.Must(client.Create(ctx, &crd, metav1.CreateOptions{}))
		nextEvent(ctx, watcher, watch.Added)
		cases.Eventually(ctx, func() string {
			current := cases.Must(client.Get(ctx, crd.Name, metav1.GetOptions{}))
			for _, condition := range current.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return ""
				}
			}
			return "the CRD is not established"
		})
	}},
}

var deleteCRDCases = []cases.Case{
	{Name: "deleting a CRD deletes its objects", Run: func(ctx context.Context) {
		client := cases.Must(apiextensions.NewForConfig(config())).ApiextensionsV1().CustomResourceDefinitions()
		name := boats.GroupResource().String()
		watcher := cases.Must(dynamicClient().Resource(boats).Watch(ctx, metav1.ListOptions{}))
		defer watcher.Stop()
		boat := cases.Must(dynamicClient().Resource(boats).Namespace(newNamespace(ctx)).
			Create(ctx, newBoat("last", 1), metav1.CreateOptions{}))
		cases.NoError(client.Delete(ctx, name, metav1.DeleteOptions{}))
		for event := range watcher.ResultChan() {
			if event.Type == watch.Deleted && nameOf(event.Object) == boat.GetName() {
				break
			}
		}
		cases.Eventually(ctx, func() string {
			if _, err := client.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return "the CRD still exists"
			}
			return ""
		})
	}},
}
