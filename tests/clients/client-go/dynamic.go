package main

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"pintle.test/client-go/cases"
)

var dynamicCases = []cases.Case{
	{Name: "custom resources live their life", Run: boatLife},
	{Name: "the scale client scales a custom resource", Run: scaled},
	{Name: "a watch goes on over a restart", Run: func(ctx context.Context) { retriedWatch(ctx, cases.Restart) }},
	{Name: "a watch goes on over a crash", Run: func(ctx context.Context) { retriedWatch(ctx, cases.Kill) }},
	{Name: "until waits for a condition", Run: until},
}

var metadataCases = []cases.Case{
	{Name: "metadata alone is got, listed, patched, watched and deleted", Run: metadataLife},
}

func newBoat(name string, sails int64) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sails": sails}}}
	made.SetGroupVersionKind(boatKind)
	made.SetName(name)
	return made
}

func nameOf(object runtime.Object) string { return cases.Get(meta.Accessor(object)).GetName() }

func field(object *unstructured.Unstructured, path ...string) any {
	found, _, err := unstructured.NestedFieldCopy(object.Object, path...)
	cases.Must(err)
	return found
}

func boatLife(ctx context.Context) {
	client := dynamics().Resource(boats).Namespace(namespace(ctx))
	watching := cases.Get(client.Watch(ctx, metav1.ListOptions{}))
	defer watching.Stop()

	asked := newBoat("anna", 2)
	asked.SetLabels(map[string]string{"colour": "red"})
	asked.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1-2"}})
	made := cases.Get(client.Create(ctx, asked, metav1.CreateOptions{}))
	cases.Equal("default", field(made, "spec", "port"), "Palos")
	cases.Equal("generation", made.GetGeneration(), int64(1))
	cases.Equal("owners", made.GetOwnerReferences(), asked.GetOwnerReferences())
	cases.Equal("added", next(ctx, watching, watch.Added).Object, runtime.Object(made))

	cases.Must(unstructured.SetNestedField(made.Object, "Genoa", "spec", "port"))
	cases.Must(unstructured.SetNestedField(made.Object, "afloat", "status", "phase"))
	updated := cases.Get(client.Update(ctx, made, metav1.UpdateOptions{}))
	cases.Equal("generation", updated.GetGeneration(), int64(2))
	cases.Equal("status after update", field(updated, "status"), nil)
	next(ctx, watching, watch.Modified)

	cases.Must(unstructured.SetNestedField(updated.Object, "afloat", "status", "phase"))
	cases.Must(unstructured.SetNestedField(updated.Object, int64(9), "spec", "sails"))
	afloat := cases.Get(client.UpdateStatus(ctx, updated, metav1.UpdateOptions{}))
	cases.Equal("status", field(afloat, "status", "phase"), "afloat")
	cases.Equal("spec after status", field(afloat, "spec", "sails"), int64(2))
	cases.Equal("generation", afloat.GetGeneration(), int64(2))
	next(ctx, watching, watch.Modified)

	patched := cases.Get(client.Patch(ctx, "anna", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/sails","value":3}]`), metav1.PatchOptions{}))
	cases.Equal("sails", field(patched, "spec", "sails"), int64(3))
	next(ctx, watching, watch.Modified)
	_, err := client.Patch(ctx, "anna", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	cases.That(apierrors.IsUnsupportedMediaType(err), "a strategic merge patch of a custom resource: %v", err)
	cases.Equal("same", cases.Get(client.Get(ctx, "anna", metav1.GetOptions{})), patched)

	for number := range 12 {
		cases.Get(client.Create(ctx, newBoat(fmt.Sprintf("boat-%02d", number), 1), metav1.CreateOptions{}))
		next(ctx, watching, watch.Added)
	}
	page := cases.Get(client.List(ctx, metav1.ListOptions{Limit: 5}))
	cases.Equal("page", len(page.Items), 5)
	page = cases.Get(client.List(ctx, metav1.ListOptions{Limit: 50, Continue: page.GetContinue()}))
	cases.Equal("page", len(page.Items), 8)
	cases.Equal("red", len(cases.Get(client.List(ctx, metav1.ListOptions{LabelSelector: "colour=red"})).Items), 1)
	cases.Equal("in Genoa", len(cases.Get(client.List(ctx, metav1.ListOptions{FieldSelector: "spec.port=Genoa"})).Items), 1)
	elsewhere := cases.Get(dynamics().Resource(boats).List(ctx, metav1.ListOptions{FieldSelector: "metadata.namespace=none"}))
	cases.Equal("in no namespace", len(elsewhere.Items), 0)

	held := []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`)
	cases.Get(client.Patch(ctx, "anna", types.MergePatchType, held, metav1.PatchOptions{}))
	next(ctx, watching, watch.Modified)
	cases.Must(client.Delete(ctx, "anna", metav1.DeleteOptions{}))
	cases.That(!next(ctx, watching, watch.Modified).Object.(*unstructured.Unstructured).GetDeletionTimestamp().IsZero(), "no deletion timestamp")
	cases.Get(client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	cases.Equal("gone", nameOf(next(ctx, watching, watch.Deleted).Object), "anna")
	cases.Must(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for range 12 {
		next(ctx, watching, watch.Deleted)
	}
	cases.Equal("left", len(cases.Get(client.List(ctx, metav1.ListOptions{})).Items), 0)
}

func scaled(ctx context.Context) {
	space := namespace(ctx)
	client := dynamics().Resource(boats).Namespace(space)
	cases.Get(client.Create(ctx, newBoat("anna", 2), metav1.CreateOptions{}))
	found := discoveryClient()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	// it reads no CBOR, so it must not be left to the preference of all clients
	plain := config()
	plain.ContentType = "application/json"
	scales := cases.Get(scale.NewForConfig(plain, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))).Scales(space)
	now := cases.Get(scales.Get(ctx, boats.GroupResource(), "anna", metav1.GetOptions{}))
	cases.Equal("replicas", now.Spec.Replicas, int32(1))
	now.Spec.Replicas = 4
	cases.Get(scales.Update(ctx, boats.GroupResource(), now, metav1.UpdateOptions{}))
	cases.Equal("replicas of the boat", field(cases.Get(client.Get(ctx, "anna", metav1.GetOptions{})), "spec", "replicas"), int64(4))
	_, err := scales.Update(ctx, boats.GroupResource(), now, metav1.UpdateOptions{})
	cases.That(apierrors.IsConflict(err), "a stale scale: %v", err)
	answer := cases.Get(scales.Patch(ctx, boats, "anna", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`), metav1.PatchOptions{}))
	cases.Equal("patched", answer.Spec.Replicas, int32(6))
	cases.Equal("kind", cases.Get(client.Get(ctx, "anna", metav1.GetOptions{}, "scale")).GetObjectKind().GroupVersionKind(),
		autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
}

// retriedWatch sees every change once, on both sides of an end of the server.
func retriedWatch(ctx context.Context, end func()) {
	client := dynamics().Resource(boats).Namespace(namespace(ctx))
	start := cases.Get(client.Create(ctx, newBoat("before", 1), metav1.CreateOptions{}))
	watching := cases.Get(watchtools.NewRetryWatcherWithContext(ctx, start.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: client.Watch,
	}))
	defer watching.Stop()
	cases.Get(client.Create(ctx, newBoat("one", 1), metav1.CreateOptions{}))
	cases.Equal("first", nameOf(next(ctx, watching, watch.Added).Object), "one")
	end()
	cases.Get(client.Create(ctx, newBoat("two", 1), metav1.CreateOptions{}))
	cases.Must(client.Delete(ctx, "one", metav1.DeleteOptions{}))
	cases.Equal("second", nameOf(next(ctx, watching, watch.Added).Object), "two")
	cases.Equal("third", nameOf(next(ctx, watching, watch.Deleted).Object), "one")
}

func until(ctx context.Context) {
	client := dynamics().Resource(boats).Namespace(namespace(ctx))
	cases.Get(client.Create(ctx, newBoat("anna", 1), metav1.CreateOptions{}))
	source := &cache.ListWatch{ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}, WatchFuncWithContext: client.Watch}
	go func() {
		_, _ = client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"status":{"phase":"afloat"}}`), metav1.PatchOptions{}, "status")
	}()
	event := cases.Get(watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
		return field(event.Object.(*unstructured.Unstructured), "status", "phase") == "afloat", nil
	}))
	cases.Equal("name", nameOf(event.Object), "anna")
}

func metadataLife(ctx context.Context) {
	space := namespace(ctx)
	client := cases.Get(metadata.NewForConfig(config())).Resource(boats).Namespace(space)
	watching := cases.Get(client.Watch(ctx, metav1.ListOptions{}))
	defer watching.Stop()
	cases.Get(dynamics().Resource(boats).Namespace(space).Create(ctx, newBoat("anna", 2), metav1.CreateOptions{}))
	cases.Equal("added", nameOf(next(ctx, watching, watch.Added).Object.(*metav1.PartialObjectMetadata)), "anna")
	labelled := cases.Get(client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
	cases.Equal("labels", labelled.Labels, map[string]string{"a": "b"})
	cases.Equal("same", cases.Get(client.Get(ctx, "anna", metav1.GetOptions{})), labelled)
	next(ctx, watching, watch.Modified)
	cases.Equal("listed", len(cases.Get(client.List(ctx, metav1.ListOptions{LabelSelector: "a=b"})).Items), 1)
	cases.Must(client.Delete(ctx, "anna", metav1.DeleteOptions{}))
	next(ctx, watching, watch.Deleted)
	_, err := client.Get(ctx, "anna", metav1.GetOptions{})
	cases.That(apierrors.IsNotFound(err), "after the deletion: %v", err)
}
