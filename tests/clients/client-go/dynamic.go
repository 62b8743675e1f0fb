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
	{Name: "custom resources are created, updated, patched, listed, watched and deleted", Run: boatLifecycle},
	{Name: "the scale client scales a custom resource", Run: scaleClient},
	{Name: "a RetryWatcher resumes after a restart of the server", Run: func(ctx context.Context) { retryWatcher(ctx, cases.Restart) }},
	{Name: "a RetryWatcher resumes after a crash of the server", Run: func(ctx context.Context) { retryWatcher(ctx, cases.Kill) }},
	{Name: "UntilWithSync waits for a condition", Run: untilWithSync},
}

var metadataCases = []cases.Case{
	{Name: "the metadata client gets, lists, patches, watches and deletes", Run: metadataLifecycle},
}

func newBoat(name string, sails int64) *unstructured.Unstructured {
	boat := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sails": sails}}}
	boat.SetGroupVersionKind(boatKind)
	boat.SetName(name)
	return boat
}

func nameOf(object runtime.Object) string { return cases.Must(meta.Accessor(object)).GetName() }

func field(object *unstructured.Unstructured, path ...string) any {
	value, _, err := unstructured.NestedFieldCopy(object.Object, path...)
	cases.NoError(err)
	return value
}

func boatLifecycle(ctx context.Context) {
	client := dynamicClient().Resource(boats).Namespace(newNamespace(ctx))
	watcher := cases.Must(client.Watch(ctx, metav1.ListOptions{}))
	defer watcher.Stop()

	boat := newBoat("anna", 2)
	boat.SetLabels(map[string]string{"colour": "red"})
	boat.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1-2"}})
	created := cases.Must(client.Create(ctx, boat, metav1.CreateOptions{}))
	cases.Equal("default", field(created, "spec", "port"), "Palos")
	cases.Equal("generation", created.GetGeneration(), int64(1))
	cases.Equal("owners", created.GetOwnerReferences(), boat.GetOwnerReferences())
	cases.Equal("added", nextEvent(ctx, watcher, watch.Added).Object, runtime.Object(created))

	cases.NoError(unstructured.SetNestedField(created.Object, "Genoa", "spec", "port"))
	cases.NoError(unstructured.SetNestedField(created.Object, "afloat", "status", "phase"))
	updated := cases.Must(client.Update(ctx, created, metav1.UpdateOptions{}))
	cases.Equal("generation", updated.GetGeneration(), int64(2))
	cases.Equal("status after update", field(updated, "status"), nil)
	nextEvent(ctx, watcher, watch.Modified)

	cases.NoError(unstructured.SetNestedField(updated.Object, "afloat", "status", "phase"))
	cases.NoError(unstructured.SetNestedField(updated.Object, int64(9), "spec", "sails"))
	withStatus := cases.Must(client.UpdateStatus(ctx, updated, metav1.UpdateOptions{}))
	cases.Equal("status", field(withStatus, "status", "phase"), "afloat")
	cases.Equal("spec after status update", field(withStatus, "spec", "sails"), int64(2))
	cases.Equal("generation", withStatus.GetGeneration(), int64(2))
	nextEvent(ctx, watcher, watch.Modified)

	patched := cases.Must(client.Patch(ctx, "anna", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/sails","value":3}]`), metav1.PatchOptions{}))
	cases.Equal("sails", field(patched, "spec", "sails"), int64(3))
	nextEvent(ctx, watcher, watch.Modified)
	_, err := client.Patch(ctx, "anna", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	cases.True(apierrors.IsUnsupportedMediaType(err), "a strategic merge patch of a custom resource: %v", err)
	cases.Equal("object", cases.Must(client.Get(ctx, "anna", metav1.GetOptions{})), patched)

	for number := range 12 {
		cases.Must(client.Create(ctx, newBoat(fmt.Sprintf("boat-%02d", number), 1), metav1.CreateOptions{}))
		nextEvent(ctx, watcher, watch.Added)
	}
	page := cases.Must(client.List(ctx, metav1.ListOptions{Limit: 5}))
	cases.Equal("page", len(page.Items), 5)
	page = cases.Must(client.List(ctx, metav1.ListOptions{Limit: 50, Continue: page.GetContinue()}))
	cases.Equal("page", len(page.Items), 8)
	cases.Equal("selected by label", len(cases.Must(client.List(ctx, metav1.ListOptions{LabelSelector: "colour=red"})).Items), 1)
	cases.Equal("selected by field", len(cases.Must(client.List(ctx, metav1.ListOptions{FieldSelector: "spec.port=Genoa"})).Items), 1)
	elsewhere := cases.Must(dynamicClient().Resource(boats).List(ctx, metav1.ListOptions{FieldSelector: "metadata.namespace=none"}))
	cases.Equal("in an unknown namespace", len(elsewhere.Items), 0)

	addFinalizer := []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`)
	cases.Must(client.Patch(ctx, "anna", types.MergePatchType, addFinalizer, metav1.PatchOptions{}))
	nextEvent(ctx, watcher, watch.Modified)
	cases.NoError(client.Delete(ctx, "anna", metav1.DeleteOptions{}))
	cases.True(!nextEvent(ctx, watcher, watch.Modified).Object.(*unstructured.Unstructured).GetDeletionTimestamp().IsZero(), "no deletion timestamp")
	cases.Must(client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	cases.Equal("deleted", nameOf(nextEvent(ctx, watcher, watch.Deleted).Object), "anna")
	cases.NoError(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for range 12 {
		nextEvent(ctx, watcher, watch.Deleted)
	}
	cases.Equal("remaining", len(cases.Must(client.List(ctx, metav1.ListOptions{})).Items), 0)
}

func scaleClient(ctx context.Context) {
	ns := newNamespace(ctx)
	client := dynamicClient().Resource(boats).Namespace(ns)
	cases.Must(client.Create(ctx, newBoat("anna", 2), metav1.CreateOptions{}))
	discovery := discoveryClient()
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery))
	// the scale client cannot decode CBOR
	jsonConfig := config()
	jsonConfig.ContentType = "application/json"
	scales := cases.Must(scale.NewForConfig(jsonConfig, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))).Scales(ns)
	current := cases.Must(scales.Get(ctx, boats.GroupResource(), "anna", metav1.GetOptions{}))
	cases.Equal("replicas", current.Spec.Replicas, int32(1))
	current.Spec.Replicas = 4
	cases.Must(scales.Update(ctx, boats.GroupResource(), current, metav1.UpdateOptions{}))
	cases.Equal("replicas of the boat", field(cases.Must(client.Get(ctx, "anna", metav1.GetOptions{})), "spec", "replicas"), int64(4))
	_, err := scales.Update(ctx, boats.GroupResource(), current, metav1.UpdateOptions{})
	cases.True(apierrors.IsConflict(err), "a stale scale: %v", err)
	patched := cases.Must(scales.Patch(ctx, boats, "anna", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`), metav1.PatchOptions{}))
	cases.Equal("patched replicas", patched.Spec.Replicas, int32(6))
	cases.Equal("kind", cases.Must(client.Get(ctx, "anna", metav1.GetOptions{}, "scale")).GetObjectKind().GroupVersionKind(),
		autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
}

// retryWatcher checks that a RetryWatcher returns each change once, before and after an interruption of the server.
func retryWatcher(ctx context.Context, interrupt func()) {
	client := dynamicClient().Resource(boats).Namespace(newNamespace(ctx))
	start := cases.Must(client.Create(ctx, newBoat("before", 1), metav1.CreateOptions{}))
	watcher := cases.Must(watchtools.NewRetryWatcherWithContext(ctx, start.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: client.Watch,
	}))
	defer watcher.Stop()
	cases.Must(client.Create(ctx, newBoat("one", 1), metav1.CreateOptions{}))
	cases.Equal("first", nameOf(nextEvent(ctx, watcher, watch.Added).Object), "one")
	interrupt()
	cases.Must(client.Create(ctx, newBoat("two", 1), metav1.CreateOptions{}))
	cases.NoError(client.Delete(ctx, "one", metav1.DeleteOptions{}))
	cases.Equal("second", nameOf(nextEvent(ctx, watcher, watch.Added).Object), "two")
	cases.Equal("third", nameOf(nextEvent(ctx, watcher, watch.Deleted).Object), "one")
}

func untilWithSync(ctx context.Context) {
	client := dynamicClient().Resource(boats).Namespace(newNamespace(ctx))
	cases.Must(client.Create(ctx, newBoat("anna", 1), metav1.CreateOptions{}))
	listWatch := &cache.ListWatch{ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}, WatchFuncWithContext: client.Watch}
	go func() {
		_, _ = client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"status":{"phase":"afloat"}}`), metav1.PatchOptions{}, "status")
	}()
	event := cases.Must(watchtools.UntilWithSync(ctx, listWatch, &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
		return field(event.Object.(*unstructured.Unstructured), "status", "phase") == "afloat", nil
	}))
	cases.Equal("name", nameOf(event.Object), "anna")
}

func metadataLifecycle(ctx context.Context) {
	ns := newNamespace(ctx)
	client := cases.Must(metadata.NewForConfig(config())).Resource(boats).Namespace(ns)
	watcher := cases.Must(client.Watch(ctx, metav1.ListOptions{}))
	defer watcher.Stop()
	cases.Must(dynamicClient().Resource(boats).Namespace(ns).Create(ctx, newBoat("anna", 2), metav1.CreateOptions{}))
	cases.Equal("added", nameOf(nextEvent(ctx, watcher, watch.Added).Object.(*metav1.PartialObjectMetadata)), "anna")
	labelled := cases.Must(client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
	cases.Equal("labels", labelled.Labels, map[string]string{"a": "b"})
	cases.Equal("object", cases.Must(client.Get(ctx, "anna", metav1.GetOptions{})), labelled)
	nextEvent(ctx, watcher, watch.Modified)
	cases.Equal("listed", len(cases.Must(client.List(ctx, metav1.ListOptions{LabelSelector: "a=b"})).Items), 1)
	cases.NoError(client.Delete(ctx, "anna", metav1.DeleteOptions{}))
	nextEvent(ctx, watcher, watch.Deleted)
	_, err := client.Get(ctx, "anna", metav1.GetOptions{})
	cases.True(apierrors.IsNotFound(err), "after the deletion: %v", err)
}
