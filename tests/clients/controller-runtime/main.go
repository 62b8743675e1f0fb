// Tests of controller-runtime with Pintle: an operator with a manager, leader election, owner references, finalizers, events,
// status conditions, and admission and conversion webhooks.
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

// operator is a running manager. stop ends it, and stopped receives what Start has returned.
type operator struct {
	manager.Manager
	stop    context.CancelFunc
	stopped chan error
}

func main() {
	ctrl.SetLogger(klog.Background())
	os.Exit(cases.Run([]cases.Case{
		{Name: "envtest installs the CRDs", Run: install},
		{Name: "the webhook server of the operator starts", Run: startWebhooks},
		{Name: "two operators start and one leads", Run: startOperators},
		{Name: "a Boat is reconciled: owned ConfigMap, condition and event", Run: reconciled},
		{Name: "an owned ConfigMap is restored after a deletion and a change", Run: repair},
		{Name: "the cache lists Boats by an index", Run: index},
		{Name: "the operator survives a restart of the server", Run: func(ctx context.Context) { survive(ctx, "restarted", cases.Restart) }},
		{Name: "the operator survives a crash of the server", Run: func(ctx context.Context) { survive(ctx, "crashed", cases.Kill) }},
		{Name: "another field manager applies a part of the status", Run: sharedStatus},
		{Name: "conflicts and invalid objects are errors of apierrors", Run: requestErrors},
		{Name: "admission webhooks mutate, deny and warn", Run: admission},
		{Name: "Anchors are converted by the conversion webhook", Run: conversion},
		{Name: "the other operator takes over the lease", Run: handover},
		{Name: "the finalizer deletes the mooring of a deleted Boat", Run: finalize},
		{Name: "an unavailable webhook fails requests until its configuration is deleted", Run: stopWebhooks},
		{Name: "envtest deletes the CRDs", Run: uninstall},
	}))
}

func connection() *rest.Config {
	return cases.Must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
}

func install(ctx context.Context) {
	existing := true
	environment = &envtest.Environment{
		UseExistingCluster: &existing, Config: connection(),
		CRDInstallOptions: envtest.CRDInstallOptions{
			Paths: []string{os.Getenv("DEFINITION")}, ErrorIfPathMissing: true, CleanUpAfterUse: true,
			CRDs: []*apiextensionsv1.CustomResourceDefinition{anchorCRD()},
		},
		WebhookInstallOptions: webhooks(),
	}
	cases.NoError(harbor.AddToScheme(scheme.Scheme))
	cases.Must(environment.Start())
	api = cases.Must(client.NewWithWatch(connection(), client.Options{Scheme: scheme.Scheme}))
	for _, name := range []string{moorings, "lake"} {
		cases.NoError(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
}

// startManager runs a manager in the background.
func startManager(manager manager.Manager) operator {
	ctx, stop := context.WithCancel(context.Background())
	started := operator{manager, stop, make(chan error, 1)}
	go func() { started.stopped <- started.Start(ctx) }()
	return started
}

// waitElected waits until the operator leads.
func waitElected(ctx context.Context, operator operator) {
	select {
	case <-operator.Elected():
	case err := <-operator.stopped:
		panic(err)
	case <-ctx.Done():
		panic("timeout: no leader was elected")
	}
}

func startOperators(ctx context.Context) {
	first = startManager(cases.Must(harbor.Manager(connection(), moorings)))
	waitElected(ctx, first)
	second = startManager(cases.Must(harbor.Manager(connection(), moorings)))
	cases.True(second.GetCache().WaitForCacheSync(ctx), "the cache of the second operator has not synced")
	select {
	case <-second.Elected():
		panic("both operators lead")
	default:
	}
}

func newBoat(name string) *harbor.Boat {
	return &harbor.Boat{ObjectMeta: metav1.ObjectMeta{Namespace: "lake", Name: name}, Spec: harbor.BoatSpec{Sails: 2}}
}

// waitReady reads the boat until the operator has reconciled its current generation.
func waitReady(ctx context.Context, boat *harbor.Boat) {
	cases.Eventually(ctx, func() string {
		cases.NoError(api.Get(ctx, client.ObjectKeyFromObject(boat), boat))
		condition := meta.FindStatusCondition(boat.Status.Conditions, harbor.Ready)
		if condition == nil || condition.ObservedGeneration != boat.Generation {
			return boat.Name + " is not ready"
		}
		return ""
	})
}

// getBerth returns the ConfigMap that the operator creates for a boat.
func getBerth(ctx context.Context, boat *harbor.Boat) (*corev1.ConfigMap, error) {
	berth := &corev1.ConfigMap{}
	return berth, api.Get(ctx, client.ObjectKey{Namespace: boat.Namespace, Name: boat.Name + "-berth"}, berth)
}

func reconciled(ctx context.Context) {
	anna := newBoat("anna")
	cases.NoError(api.Create(ctx, anna))
	waitReady(ctx, anna)
	cases.Equal("phase", anna.Status.Phase, "afloat")
	cases.Equal("replicas", anna.Status.Replicas, int32(1))
	cases.Equal("finalizers", anna.Finalizers, []string{harbor.Moored})
	berth := cases.Must(getBerth(ctx, anna))
	cases.True(metav1.IsControlledBy(berth, anna), "the berth is not controlled by the boat: %v", berth.OwnerReferences)
	cases.Eventually(ctx, func() string {
		events := &eventsv1.EventList{}
		cases.NoError(api.List(ctx, events, client.InNamespace("lake")))
		for _, event := range events.Items {
			if event.Reason == "Berthed" && event.Regarding.Name == "anna" && event.ReportingController == "harbor" {
				return ""
			}
		}
		return "the event Berthed is missing"
	})
}

func repair(ctx context.Context) {
	anna := newBoat("anna")
	before := cases.Must(getBerth(ctx, anna))
	cases.NoError(api.Delete(ctx, before))
	cases.Eventually(ctx, func() string {
		if now, err := getBerth(ctx, anna); err != nil || now.UID == before.UID {
			return "the berth has not been created again"
		}
		return ""
	})
	changed := cases.Must(getBerth(ctx, anna))
	cases.NoError(api.Patch(ctx, changed, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"port":"nowhere"}}`))))
	cases.Eventually(ctx, func() string {
		if now, err := getBerth(ctx, anna); err != nil || now.Data["port"] != "Palos" {
			return "the berth has not been restored"
		}
		return ""
	})
}

func index(ctx context.Context) {
	genoese := newBoat("genoese")
	genoese.Spec.Port = "Genoa"
	cases.NoError(api.Create(ctx, genoese))
	waitReady(ctx, genoese)
	cases.Eventually(ctx, func() string {
		boats := &harbor.BoatList{}
		cases.NoError(first.GetClient().List(ctx, boats, client.MatchingFields{harbor.ByPort: "Genoa"}))
		if len(boats.Items) != 1 {
			return "the index does not have the boat"
		}
		return ""
	})
	selected := &harbor.BoatList{}
	cases.NoError(api.List(ctx, selected, client.MatchingFields{harbor.ByPort: "Genoa"}))
	cases.Equal("selected by the server", len(selected.Items), 1)
}

// survive checks that the operator works before and after an interruption of the server.
func survive(ctx context.Context, name string, interrupt func()) {
	before, after := newBoat(name+"-before"), newBoat(name+"-after")
	cases.NoError(api.Create(ctx, before))
	waitReady(ctx, before)
	interrupt()
	cases.NoError(api.Create(ctx, after))
	cases.NoError(api.Patch(ctx, before, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"sails":5}}`))))
	waitReady(ctx, after)
	waitReady(ctx, before)
	cases.Equal("sails", cases.Must(getBerth(ctx, before)).Data["sails"], "5")
	select {
	case err := <-first.stopped:
		panic(err)
	default:
	}
}

func sharedStatus(ctx context.Context) {
	insured := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{"type": "Insured", "status": "True", "reason": "Paid"}},
	}}}
	insured.SetGroupVersionKind(harbor.GroupVersion.WithKind("Boat"))
	insured.SetNamespace("lake")
	insured.SetName("anna")
	cases.NoError(api.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(insured), client.FieldOwner("insurer")))
	anna := newBoat("anna")
	cases.NoError(api.Get(ctx, client.ObjectKeyFromObject(anna), anna))
	cases.True(meta.IsStatusConditionTrue(anna.Status.Conditions, "Insured"), "the boat is not insured")
	cases.True(meta.IsStatusConditionTrue(anna.Status.Conditions, harbor.Ready), "the boat is no longer ready")
}

func requestErrors(ctx context.Context) {
	anna := newBoat("anna")
	cases.NoError(api.Get(ctx, client.ObjectKeyFromObject(anna), anna))
	stale := anna.DeepCopyObject().(*harbor.Boat)
	anna.Labels = map[string]string{"seen": "yes"}
	cases.NoError(api.Update(ctx, anna))
	stale.Spec.Sails = 4
	cases.True(apierrors.IsConflict(api.Update(ctx, stale)), "a stale update is not a conflict")
	unpatched := stale.DeepCopyObject().(*harbor.Boat)
	stale.Spec.Sails = 5
	err := api.Patch(ctx, stale, client.MergeFromWithOptions(unpatched, client.MergeFromWithOptimisticLock{}))
	cases.True(apierrors.IsConflict(err), "a stale patch: %v", err)
	broken := newBoat("broken")
	broken.Spec.Sails = 99
	err = api.Create(ctx, broken)
	cases.True(apierrors.IsInvalid(err), "99 sails: %v", err)
	var status apierrors.APIStatus
	cases.True(errors.As(err, &status), "the error has no status")
	cases.Equal("cause", status.Status().Details.Causes[0].Field, "spec.sails")
	cases.True(meta.IsNoMatchError(api.Create(ctx, unknownKind())), "an unknown kind")
}

func unknownKind() *unstructured.Unstructured {
	ghost := &unstructured.Unstructured{}
	ghost.SetGroupVersionKind(harbor.GroupVersion.WithKind("Ghost"))
	ghost.SetName("ghost")
	return ghost
}

func handover(ctx context.Context) {
	first.stop()
	select {
	case err := <-first.stopped:
		cases.NoError(err)
	case <-ctx.Done():
		panic("timeout: the first operator does not stop")
	}
	waitElected(ctx, second)
	late := newBoat("late")
	cases.NoError(api.Create(ctx, late))
	waitReady(ctx, late)
}

func finalize(ctx context.Context) {
	anna := newBoat("anna")
	cases.NoError(api.Get(ctx, client.ObjectKeyFromObject(anna), anna))
	mooring := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: moorings, Name: string(anna.UID)}}
	cases.NoError(api.Get(ctx, client.ObjectKeyFromObject(mooring), mooring))
	cases.NoError(api.Delete(ctx, anna))
	cases.Eventually(ctx, func() string {
		if !apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(anna), anna)) {
			return "the boat still exists"
		}
		return ""
	})
	err := api.Get(ctx, client.ObjectKeyFromObject(mooring), mooring)
	cases.True(apierrors.IsNotFound(err), "the mooring of a deleted boat: %v", err)
	cases.NoError(api.DeleteAllOf(ctx, &harbor.Boat{}, client.InNamespace("lake")))
	cases.Eventually(ctx, func() string {
		boats := &harbor.BoatList{}
		cases.NoError(api.List(ctx, boats))
		if len(boats.Items) > 0 {
			return "boats still exist"
		}
		return ""
	})
}

func uninstall(ctx context.Context) {
	second.stop()
	cases.NoError(<-second.stopped)
	cases.NoError(environment.Stop())
	cases.Eventually(ctx, func() string {
		if err := api.List(ctx, &harbor.BoatList{}); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			return "boats are still served"
		}
		return ""
	})
}
