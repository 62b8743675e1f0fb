// Controller-runtime against pintle: an operator lives its life, with its manager, leader election, owner references,
// finalizers, events and status conditions, its webhooks of admission and of conversion.
package main

import (
	"context"
	"errors"
	"os"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"pintle.test/client-go/cases"
	"pintle.test/controller-runtime/harbor"
)

const moorings = "moorings"

var (
	environment *envtest.Environment
	api         client.WithWatch
	first       operator
	second      operator
)

// operator is one that runs, how it is asked to leave and what it says when it has.
type operator struct {
	manager.Manager
	leave context.CancelFunc
	left  chan error
}

func main() {
	ctrl.SetLogger(klog.Background())
	os.Exit(cases.Run([]cases.Case{
		{Name: "envtest installs the definition", Run: install},
		{Name: "the webhooks of the operator are served", Run: open},
		{Name: "two operators start and one leads", Run: start},
		{Name: "a boat gets its berth, its condition and its event", Run: berth},
		{Name: "a berth that somebody deletes or changes comes back", Run: repair},
		{Name: "the cache finds boats by an index", Run: indexed},
		{Name: "the operator goes on over a restart", Run: func(ctx context.Context) { over(ctx, "restarted", cases.Restart) }},
		{Name: "the operator goes on over a crash", Run: func(ctx context.Context) { over(ctx, "crashed", cases.Kill) }},
		{Name: "another owner's status is applied beside the operator's", Run: shared},
		{Name: "conflicts and invalid boats are client-go's errors", Run: refused},
		{Name: "webhooks change, refuse and warn", Run: admitted},
		{Name: "anchors are converted by the webhook", Run: converted},
		{Name: "the other operator takes over", Run: handover},
		{Name: "a deleted boat lets go of its mooring", Run: letGo},
		{Name: "a webhook that is gone refuses until it is taken away", Run: shut},
		{Name: "envtest takes the definition away", Run: uninstall},
	}))
}

func connection() *rest.Config {
	return cases.Get(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
}

func install(ctx context.Context) {
	existing := true
	environment = &envtest.Environment{
		UseExistingCluster: &existing, Config: connection(),
		CRDInstallOptions: envtest.CRDInstallOptions{
			Paths: []string{os.Getenv("DEFINITION")}, ErrorIfPathMissing: true, CleanUpAfterUse: true,
			CRDs: []*apiextensionsv1.CustomResourceDefinition{anchors()},
		},
		WebhookInstallOptions: hooks(),
	}
	cases.Must(harbor.AddToScheme(scheme.Scheme))
	cases.Get(environment.Start())
	api = cases.Get(client.NewWithWatch(connection(), client.Options{Scheme: scheme.Scheme}))
	for _, name := range []string{moorings, "lake"} {
		cases.Must(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
}

func operate() operator {
	ctx, leave := context.WithCancel(context.Background())
	made := operator{cases.Get(harbor.Manager(connection(), moorings)), leave, make(chan error, 1)}
	go func() { made.left <- made.Start(ctx) }()
	return made
}

func elected(ctx context.Context, which operator) {
	select {
	case <-which.Elected():
	case err := <-which.left:
		panic(err)
	case <-ctx.Done():
		panic("nobody was elected")
	}
}

func start(ctx context.Context) {
	first = operate()
	elected(ctx, first)
	second = operate()
	cases.That(second.GetCache().WaitForCacheSync(ctx), "the second has no cache")
	select {
	case <-second.Elected():
		panic("two lead")
	default:
	}
}

func boat(name string) *harbor.Boat {
	return &harbor.Boat{ObjectMeta: metav1.ObjectMeta{Namespace: "lake", Name: name}, Spec: harbor.BoatSpec{Sails: 2}}
}

// ready waits for a boat that the operator has seen as it is now.
func ready(ctx context.Context, which *harbor.Boat) {
	cases.Eventually(ctx, func() string {
		cases.Must(api.Get(ctx, client.ObjectKeyFromObject(which), which))
		condition := meta.FindStatusCondition(which.Status.Conditions, harbor.Ready)
		if condition == nil || condition.ObservedGeneration != which.Generation {
			return which.Name + " is not ready"
		}
		return ""
	})
}

func berthOf(ctx context.Context, of *harbor.Boat) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	return found, api.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name + "-berth"}, found)
}

func berth(ctx context.Context) {
	anna := boat("anna")
	cases.Must(api.Create(ctx, anna))
	ready(ctx, anna)
	cases.Equal("phase", anna.Status.Phase, "afloat")
	cases.Equal("replicas", anna.Status.Replicas, int32(1))
	cases.Equal("finalizers", anna.Finalizers, []string{harbor.Moored})
	found := cases.Get(berthOf(ctx, anna))
	cases.That(metav1.IsControlledBy(found, anna), "the berth is not the boat's: %v", found.OwnerReferences)
	cases.Eventually(ctx, func() string {
		told := &eventsv1.EventList{}
		cases.Must(api.List(ctx, told, client.InNamespace("lake")))
		for _, event := range told.Items {
			if event.Reason == "Berthed" && event.Regarding.Name == "anna" && event.ReportingController == "harbor" {
				return ""
			}
		}
		return "no event tells of the berth"
	})
}

func repair(ctx context.Context) {
	anna := boat("anna")
	before := cases.Get(berthOf(ctx, anna))
	cases.Must(api.Delete(ctx, before))
	cases.Eventually(ctx, func() string {
		if now, err := berthOf(ctx, anna); err != nil || now.UID == before.UID {
			return "the berth does not come back"
		}
		return ""
	})
	changed := cases.Get(berthOf(ctx, anna))
	cases.Must(api.Patch(ctx, changed, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"port":"nowhere"}}`))))
	cases.Eventually(ctx, func() string {
		if now, err := berthOf(ctx, anna); err != nil || now.Data["port"] != "Palos" {
			return "the berth does not become what it was"
		}
		return ""
	})
}

func indexed(ctx context.Context) {
	genoese := boat("genoese")
	genoese.Spec.Port = "Genoa"
	cases.Must(api.Create(ctx, genoese))
	ready(ctx, genoese)
	cases.Eventually(ctx, func() string {
		found := &harbor.BoatList{}
		cases.Must(first.GetClient().List(ctx, found, client.MatchingFields{harbor.ByPort: "Genoa"}))
		if len(found.Items) != 1 {
			return "the index has no boat"
		}
		return ""
	})
	selected := &harbor.BoatList{}
	cases.Must(api.List(ctx, selected, client.MatchingFields{harbor.ByPort: "Genoa"}))
	cases.Equal("selected by the server", len(selected.Items), 1)
}

// over has the operator do its work on both sides of an end of the server.
func over(ctx context.Context, name string, end func()) {
	before, after := boat(name+"-before"), boat(name+"-after")
	cases.Must(api.Create(ctx, before))
	ready(ctx, before)
	end()
	cases.Must(api.Create(ctx, after))
	cases.Must(api.Patch(ctx, before, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"sails":5}}`))))
	ready(ctx, after)
	ready(ctx, before)
	cases.Equal("sails", cases.Get(berthOf(ctx, before)).Data["sails"], "5")
	select {
	case err := <-first.left:
		panic(err)
	default:
	}
}

func shared(ctx context.Context) {
	insured := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{"type": "Insured", "status": "True", "reason": "Paid"}},
	}}}
	insured.SetGroupVersionKind(harbor.GroupVersion.WithKind("Boat"))
	insured.SetNamespace("lake")
	insured.SetName("anna")
	cases.Must(api.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(insured), client.FieldOwner("insurer")))
	anna := boat("anna")
	cases.Must(api.Get(ctx, client.ObjectKeyFromObject(anna), anna))
	cases.That(meta.IsStatusConditionTrue(anna.Status.Conditions, "Insured"), "the boat is not insured")
	cases.That(meta.IsStatusConditionTrue(anna.Status.Conditions, harbor.Ready), "the boat is no longer ready")
}

func refused(ctx context.Context) {
	anna := boat("anna")
	cases.Must(api.Get(ctx, client.ObjectKeyFromObject(anna), anna))
	stale := anna.DeepCopyObject().(*harbor.Boat)
	anna.Labels = map[string]string{"seen": "yes"}
	cases.Must(api.Update(ctx, anna))
	stale.Spec.Sails = 4
	cases.That(apierrors.IsConflict(api.Update(ctx, stale)), "a stale update is no conflict")
	unpatched := stale.DeepCopyObject().(*harbor.Boat)
	stale.Spec.Sails = 5
	err := api.Patch(ctx, stale, client.MergeFromWithOptions(unpatched, client.MergeFromWithOptimisticLock{}))
	cases.That(apierrors.IsConflict(err), "a stale patch: %v", err)
	broken := boat("broken")
	broken.Spec.Sails = 99
	err = api.Create(ctx, broken)
	cases.That(apierrors.IsInvalid(err), "99 sails: %v", err)
	var status apierrors.APIStatus
	cases.That(errors.As(err, &status), "no status")
	cases.Equal("cause", status.Status().Details.Causes[0].Field, "spec.sails")
	cases.That(meta.IsNoMatchError(api.Create(ctx, unknown())), "a kind that is not there")
}

func unknown() *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(harbor.GroupVersion.WithKind("Ghost"))
	made.SetName("ghost")
	return made
}

func handover(ctx context.Context) {
	first.leave()
	select {
	case err := <-first.left:
		cases.Must(err)
	case <-ctx.Done():
		panic("the first does not leave")
	}
	elected(ctx, second)
	late := boat("late")
	cases.Must(api.Create(ctx, late))
	ready(ctx, late)
}

func letGo(ctx context.Context) {
	anna := boat("anna")
	cases.Must(api.Get(ctx, client.ObjectKeyFromObject(anna), anna))
	mooring := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: moorings, Name: string(anna.UID)}}
	cases.Must(api.Get(ctx, client.ObjectKeyFromObject(mooring), mooring))
	cases.Must(api.Delete(ctx, anna))
	cases.Eventually(ctx, func() string {
		if !apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(anna), anna)) {
			return "the boat is still there"
		}
		return ""
	})
	err := api.Get(ctx, client.ObjectKeyFromObject(mooring), mooring)
	cases.That(apierrors.IsNotFound(err), "the mooring after its boat: %v", err)
	cases.Must(api.DeleteAllOf(ctx, &harbor.Boat{}, client.InNamespace("lake")))
	cases.Eventually(ctx, func() string {
		left := &harbor.BoatList{}
		cases.Must(api.List(ctx, left))
		if len(left.Items) > 0 {
			return "boats are left"
		}
		return ""
	})
}

func uninstall(ctx context.Context) {
	second.leave()
	cases.Must(<-second.left)
	cases.Must(environment.Stop())
	cases.Eventually(ctx, func() string {
		if err := api.List(ctx, &harbor.BoatList{}); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return "boats are still served"
		}
		return ""
	})
}
