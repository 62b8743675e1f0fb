package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"pintle.test/client-go/cases"
)

var typedCases = []cases.Case{
	{Name: "ConfigMaps are created, updated, listed, watched and deleted in JSON", Run: func(ctx context.Context) { configMaps(ctx, "application/json") }},
	{Name: "ConfigMaps are created, updated, listed, watched and deleted in protobuf", Run: func(ctx context.Context) { configMaps(ctx, protobuf) }},
	{Name: "Secrets in JSON", Run: func(ctx context.Context) { secrets(ctx, "application/json") }},
	{Name: "Secrets in protobuf", Run: func(ctx context.Context) { secrets(ctx, protobuf) }},
	{Name: "Leases in JSON", Run: func(ctx context.Context) { leases(ctx, "application/json") }},
	{Name: "Leases in protobuf", Run: func(ctx context.Context) { leases(ctx, protobuf) }},
	{Name: "Events in both API groups, in JSON", Run: func(ctx context.Context) { events(ctx, "application/json") }},
	{Name: "Events in both API groups, in protobuf", Run: func(ctx context.Context) { events(ctx, protobuf) }},
	{Name: "an event recorder counts repeated events", Run: eventRecorder},
	{Name: "deleting a namespace deletes its content", Run: namespaceDeletion},
	{Name: "the pages of a list are of one snapshot", Run: pagination},
}

// clientFor returns a client that sends and accepts a content type.
func clientFor(contentType string) *kubernetes.Clientset {
	clientConfig := config()
	clientConfig.ContentType, clientConfig.AcceptContentTypes = contentType, contentType
	return cases.Must(kubernetes.NewForConfig(clientConfig))
}

func configMaps(ctx context.Context, contentType string) {
	client := clientFor(contentType).CoreV1().ConfigMaps(newNamespace(ctx))
	watcher := cases.Must(client.Watch(ctx, metav1.ListOptions{}))
	defer watcher.Stop()

	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "settings-", Labels: map[string]string{"tier": "front"}},
		Data:       map[string]string{"key": "value"}, BinaryData: map[string][]byte{"bytes": {0, 1, 254, 255}},
	}
	created := cases.Must(client.Create(ctx, configMap, metav1.CreateOptions{FieldManager: "tester"}))
	cases.True(created.UID != "" && created.ResourceVersion != "" && !created.CreationTimestamp.IsZero(), "system fields are missing: %v", created)
	cases.Equal("data", created.Data, configMap.Data)
	cases.Equal("binary data", created.BinaryData, configMap.BinaryData)
	cases.Equal("manager", created.ManagedFields[0].Manager, "tester")
	cases.Equal("found", cases.Must(client.Get(ctx, created.Name, metav1.GetOptions{})), created)
	cases.Equal("added", nextEvent(ctx, watcher, watch.Added).Object, runtime.Object(created))

	created.Data["more"] = "values"
	updated := cases.Must(client.Update(ctx, created, metav1.UpdateOptions{}))
	cases.Equal("modified", nextEvent(ctx, watcher, watch.Modified).Object, runtime.Object(updated))
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"1"}]`,
		types.MergePatchType:          `{"data":{"merge":"1"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic":"1"}}`,
	} {
		cases.Must(client.Patch(ctx, created.Name, kind, []byte(patch), metav1.PatchOptions{}))
		nextEvent(ctx, watcher, watch.Modified)
	}
	listed := cases.Must(client.List(ctx, metav1.ListOptions{LabelSelector: "tier in (front)"}))
	cases.Equal("listed", len(listed.Items), 1)
	cases.Equal("keys", len(listed.Items[0].Data), 5)
	others := cases.Must(client.List(ctx, metav1.ListOptions{LabelSelector: "tier!=front"})).Items
	for _, item := range others {
		cases.True(item.Labels["tier"] != "front", "%s does not match the selector", item.Name)
	}

	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	cases.NoError(client.Delete(ctx, created.Name, dryRun))
	stale := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("other"))}}
	cases.True(apierrors.IsConflict(client.Delete(ctx, created.Name, stale)), "a delete with a wrong UID is not a conflict")
	cases.NoError(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "tier=front"}))
	nextEvent(ctx, watcher, watch.Deleted)
	_, err := client.Get(ctx, created.Name, metav1.GetOptions{})
	cases.True(apierrors.IsNotFound(err), "after the deletion: %v", err)
}

func secrets(ctx context.Context, contentType string) {
	client := clientFor(contentType).CoreV1().Secrets(newNamespace(ctx))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"a": "secret"},
		Data: map[string][]byte{"b": []byte("hidden")}, Immutable: ptr.To(true),
	}
	created := cases.Must(client.Create(ctx, secret, metav1.CreateOptions{}))
	cases.Equal("data", created.Data, map[string][]byte{"a": []byte("secret"), "b": []byte("hidden")})
	cases.Equal("type", created.Type, corev1.SecretTypeOpaque)
	created.Data["a"] = []byte("other")
	_, err := client.Update(ctx, created, metav1.UpdateOptions{})
	cases.True(apierrors.IsInvalid(err), "an update of an immutable Secret: %v", err)
	_, err = client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tls"}, Type: corev1.SecretTypeTLS}, metav1.CreateOptions{})
	cases.True(apierrors.IsInvalid(err), "a TLS Secret without a key: %v", err)
}

func leases(ctx context.Context, contentType string) {
	client := clientFor(contentType).CoordinationV1().Leases(newNamespace(ctx))
	renewed := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "helm"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("first"), LeaseDurationSeconds: ptr.To(int32(15)), RenewTime: &renewed,
			LeaseTransitions: ptr.To(int32(0)),
		},
	}
	created := cases.Must(client.Create(ctx, lease, metav1.CreateOptions{}))
	cases.True(created.Spec.RenewTime.Equal(&renewed), "renewTime is %v", created.Spec.RenewTime)
	cases.Equal("transitions", *created.Spec.LeaseTransitions, int32(0))
	created.Spec.HolderIdentity = ptr.To("second")
	cases.Equal("holder", *cases.Must(client.Update(ctx, created, metav1.UpdateOptions{})).Spec.HolderIdentity, "second")
	created.Spec.LeaseDurationSeconds = ptr.To(int32(-1))
	created.ResourceVersion = ""
	_, err := client.Update(ctx, created, metav1.UpdateOptions{})
	cases.True(apierrors.IsInvalid(err), "a negative duration: %v", err)
}

func events(ctx context.Context, contentType string) {
	ns, client := newNamespace(ctx), clientFor(contentType)
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "sank.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Boat", Namespace: ns, Name: "anna"},
		Reason:         "Sank", Message: "it is gone", Type: corev1.EventTypeWarning, Count: 3,
		FirstTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		Source:         corev1.EventSource{Component: "harbour", Host: "here"},
	}
	cases.Must(client.CoreV1().Events(ns).Create(ctx, event, metav1.CreateOptions{}))
	converted := cases.Must(client.EventsV1().Events(ns).Get(ctx, event.Name, metav1.GetOptions{}))
	cases.Equal("note", converted.Note, event.Message)
	cases.Equal("regarding", converted.Regarding.Name, "anna")
	cases.Equal("count", converted.DeprecatedCount, int32(3))
	cases.Equal("source", converted.DeprecatedSource, event.Source)
	_, err := client.EventsV1().Events(ns).Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}, metav1.CreateOptions{})
	cases.True(apierrors.IsInvalid(err), "an incomplete Event: %v", err)
	selector := "involvedObject.name=anna,reason=Sank,type=Warning"
	found := cases.Must(client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: selector}))
	cases.Equal("selected", len(found.Items), 1)
}

func eventRecorder(ctx context.Context) {
	ns := newNamespace(ctx)
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: typedClient().CoreV1().Events(ns)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
	regarding := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "regarded", Namespace: ns, UID: "1"}}
	for range 3 {
		recorder.Event(regarding, corev1.EventTypeNormal, "Looked", "a test looked")
	}
	cases.Eventually(ctx, func() string {
		events := cases.Must(typedClient().CoreV1().Events(ns).List(ctx, metav1.ListOptions{})).Items
		if len(events) == 1 && events[0].Count == 3 {
			return ""
		}
		return fmt.Sprintf("got the events %v", events)
	})
}

func namespaceDeletion(ctx context.Context) {
	client, ns := typedClient(), newNamespace(ctx)
	cases.Must(client.CoreV1().ConfigMaps(ns).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}, metav1.CreateOptions{}))
	watcher := cases.Must(client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + ns}))
	defer watcher.Stop()
	cases.Equal("phase", nextEvent(ctx, watcher, watch.Added).Object.(*corev1.Namespace).Status.Phase, corev1.NamespaceActive)
	cases.NoError(client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}))
	cases.Equal("phase", nextEvent(ctx, watcher, watch.Modified).Object.(*corev1.Namespace).Status.Phase, corev1.NamespaceTerminating)
	_, err := client.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
	cases.True(apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "a ConfigMap in a terminating namespace: %v", err)
	cases.Must(client.CoreV1().ConfigMaps(ns).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	for event := range watcher.ResultChan() {
		if event.Type == watch.Deleted {
			return
		}
	}
	panic("the watch ended before the namespace was deleted")
}

func pagination(ctx context.Context) {
	client := typedClient().CoreV1().ConfigMaps(newNamespace(ctx))
	for number := range 25 {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%02d", number)}}
		cases.Must(client.Create(ctx, configMap, metav1.CreateOptions{}))
	}
	first := cases.Must(client.List(ctx, metav1.ListOptions{Limit: 10}))
	total := len(cases.Must(client.List(ctx, metav1.ListOptions{})).Items)
	cases.Equal("remaining", *first.RemainingItemCount, int64(total-10))
	cases.NoError(client.Delete(ctx, "page-24", metav1.DeleteOptions{}))
	rest := cases.Must(client.List(ctx, metav1.ListOptions{Continue: first.Continue}))
	cases.Equal("items of the snapshot", len(rest.Items), total-10)
	cases.Equal("resourceVersion", rest.ResourceVersion, first.ResourceVersion)

	pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}))
	pages.PageSize = 7
	items := 0
	cases.NoError(pages.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { items++; return nil }))
	cases.Equal("items of all pages", items, total-1)
}
