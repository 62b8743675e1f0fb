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
	{Name: "config maps live their life in JSON", Run: func(ctx context.Context) { configMaps(ctx, "application/json") }},
	{Name: "config maps live their life in protobuf", Run: func(ctx context.Context) { configMaps(ctx, protobuf) }},
	{Name: "secrets in JSON", Run: func(ctx context.Context) { secrets(ctx, "application/json") }},
	{Name: "secrets in protobuf", Run: func(ctx context.Context) { secrets(ctx, protobuf) }},
	{Name: "leases in JSON", Run: func(ctx context.Context) { leases(ctx, "application/json") }},
	{Name: "leases in protobuf", Run: func(ctx context.Context) { leases(ctx, protobuf) }},
	{Name: "events in both of their groups, in JSON", Run: func(ctx context.Context) { events(ctx, "application/json") }},
	{Name: "events in both of their groups, in protobuf", Run: func(ctx context.Context) { events(ctx, protobuf) }},
	{Name: "a recorder counts an event that repeats", Run: recorder},
	{Name: "a namespace takes its content with it", Run: namespaceLife},
	{Name: "a list in pages is one snapshot", Run: pages},
}

func speaking(contentType string) *kubernetes.Clientset {
	made := config()
	made.ContentType, made.AcceptContentTypes = contentType, contentType
	return cases.Get(kubernetes.NewForConfig(made))
}

func configMaps(ctx context.Context, contentType string) {
	client := speaking(contentType).CoreV1().ConfigMaps(namespace(ctx))
	watching := cases.Get(client.Watch(ctx, metav1.ListOptions{}))
	defer watching.Stop()

	asked := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "settings-", Labels: map[string]string{"tier": "front"}},
		Data:       map[string]string{"key": "value"}, BinaryData: map[string][]byte{"bytes": {0, 1, 254, 255}},
	}
	made := cases.Get(client.Create(ctx, asked, metav1.CreateOptions{FieldManager: "tester"}))
	cases.That(made.UID != "" && made.ResourceVersion != "" && !made.CreationTimestamp.IsZero(), "no system fields: %v", made)
	cases.Equal("data", made.Data, asked.Data)
	cases.Equal("binary data", made.BinaryData, asked.BinaryData)
	cases.Equal("manager", made.ManagedFields[0].Manager, "tester")
	cases.Equal("found", cases.Get(client.Get(ctx, made.Name, metav1.GetOptions{})), made)
	cases.Equal("added", next(ctx, watching, watch.Added).Object, runtime.Object(made))

	made.Data["more"] = "values"
	updated := cases.Get(client.Update(ctx, made, metav1.UpdateOptions{}))
	cases.Equal("modified", next(ctx, watching, watch.Modified).Object, runtime.Object(updated))
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"1"}]`,
		types.MergePatchType:          `{"data":{"merge":"1"}}`,
		types.StrategicMergePatchType: `{"data":{"strategic":"1"}}`,
	} {
		cases.Get(client.Patch(ctx, made.Name, kind, []byte(patch), metav1.PatchOptions{}))
		next(ctx, watching, watch.Modified)
	}
	listed := cases.Get(client.List(ctx, metav1.ListOptions{LabelSelector: "tier in (front)"}))
	cases.Equal("listed", len(listed.Items), 1)
	cases.Equal("keys", len(listed.Items[0].Data), 5)
	none := cases.Get(client.List(ctx, metav1.ListOptions{LabelSelector: "tier!=front"})).Items
	for _, item := range none {
		cases.That(item.Labels["tier"] != "front", "the selector lets %s through", item.Name)
	}

	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	cases.Must(client.Delete(ctx, made.Name, dry))
	stale := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("other"))}}
	cases.That(apierrors.IsConflict(client.Delete(ctx, made.Name, stale)), "a wrong uid is no conflict")
	cases.Must(client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "tier=front"}))
	next(ctx, watching, watch.Deleted)
	_, err := client.Get(ctx, made.Name, metav1.GetOptions{})
	cases.That(apierrors.IsNotFound(err), "after the deletion: %v", err)
}

func secrets(ctx context.Context, contentType string) {
	client := speaking(contentType).CoreV1().Secrets(namespace(ctx))
	asked := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"a": "secret"},
		Data: map[string][]byte{"b": []byte("hidden")}, Immutable: ptr.To(true),
	}
	made := cases.Get(client.Create(ctx, asked, metav1.CreateOptions{}))
	cases.Equal("data", made.Data, map[string][]byte{"a": []byte("secret"), "b": []byte("hidden")})
	cases.Equal("type", made.Type, corev1.SecretTypeOpaque)
	made.Data["a"] = []byte("other")
	_, err := client.Update(ctx, made, metav1.UpdateOptions{})
	cases.That(apierrors.IsInvalid(err), "an immutable secret was changed: %v", err)
	_, err = client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tls"}, Type: corev1.SecretTypeTLS}, metav1.CreateOptions{})
	cases.That(apierrors.IsInvalid(err), "a TLS secret without a key was made: %v", err)
}

func leases(ctx context.Context, contentType string) {
	client := speaking(contentType).CoordinationV1().Leases(namespace(ctx))
	renewed := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	asked := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "helm"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("first"), LeaseDurationSeconds: ptr.To(int32(15)), RenewTime: &renewed,
			LeaseTransitions: ptr.To(int32(0)),
		},
	}
	made := cases.Get(client.Create(ctx, asked, metav1.CreateOptions{}))
	cases.That(made.Spec.RenewTime.Equal(&renewed), "renewTime is %v", made.Spec.RenewTime)
	cases.Equal("transitions", *made.Spec.LeaseTransitions, int32(0))
	made.Spec.HolderIdentity = ptr.To("second")
	cases.Equal("holder", *cases.Get(client.Update(ctx, made, metav1.UpdateOptions{})).Spec.HolderIdentity, "second")
	made.Spec.LeaseDurationSeconds = ptr.To(int32(-1))
	made.ResourceVersion = ""
	_, err := client.Update(ctx, made, metav1.UpdateOptions{})
	cases.That(apierrors.IsInvalid(err), "a lease of less than nothing: %v", err)
}

func events(ctx context.Context, contentType string) {
	space, client := namespace(ctx), speaking(contentType)
	asked := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "sank.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Boat", Namespace: space, Name: "anna"},
		Reason:         "Sank", Message: "it is gone", Type: corev1.EventTypeWarning, Count: 3,
		FirstTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		Source:         corev1.EventSource{Component: "harbour", Host: "here"},
	}
	cases.Get(client.CoreV1().Events(space).Create(ctx, asked, metav1.CreateOptions{}))
	other := cases.Get(client.EventsV1().Events(space).Get(ctx, asked.Name, metav1.GetOptions{}))
	cases.Equal("note", other.Note, asked.Message)
	cases.Equal("regarding", other.Regarding.Name, "anna")
	cases.Equal("count", other.DeprecatedCount, int32(3))
	cases.Equal("source", other.DeprecatedSource, asked.Source)
	_, err := client.EventsV1().Events(space).Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}, metav1.CreateOptions{})
	cases.That(apierrors.IsInvalid(err), "a bare event was made: %v", err)
	selector := "involvedObject.name=anna,reason=Sank,type=Warning"
	found := cases.Get(client.CoreV1().Events(space).List(ctx, metav1.ListOptions{FieldSelector: selector}))
	cases.Equal("selected", len(found.Items), 1)
}

func recorder(ctx context.Context) {
	space := namespace(ctx)
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: typed().CoreV1().Events(space)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tester"})
	about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "regarded", Namespace: space, UID: "1"}}
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Looked", "somebody looked")
	}
	cases.Eventually(ctx, func() string {
		found := cases.Get(typed().CoreV1().Events(space).List(ctx, metav1.ListOptions{})).Items
		if len(found) == 1 && found[0].Count == 3 {
			return ""
		}
		return fmt.Sprintf("there are the events %v", found)
	})
}

func namespaceLife(ctx context.Context) {
	client, space := typed(), namespace(ctx)
	cases.Get(client.CoreV1().ConfigMaps(space).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}}}, metav1.CreateOptions{}))
	watching := cases.Get(client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + space}))
	defer watching.Stop()
	cases.Equal("phase", next(ctx, watching, watch.Added).Object.(*corev1.Namespace).Status.Phase, corev1.NamespaceActive)
	cases.Must(client.CoreV1().Namespaces().Delete(ctx, space, metav1.DeleteOptions{}))
	cases.Equal("phase", next(ctx, watching, watch.Modified).Object.(*corev1.Namespace).Status.Phase, corev1.NamespaceTerminating)
	_, err := client.CoreV1().ConfigMaps(space).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
	cases.That(apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "a config map in a dying namespace: %v", err)
	cases.Get(client.CoreV1().ConfigMaps(space).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	for event := range watching.ResultChan() {
		if event.Type == watch.Deleted {
			return
		}
	}
	panic("the watch ended before the namespace was gone")
}

func pages(ctx context.Context) {
	client := typed().CoreV1().ConfigMaps(namespace(ctx))
	for number := range 25 {
		asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("page-%02d", number)}}
		cases.Get(client.Create(ctx, asked, metav1.CreateOptions{}))
	}
	first := cases.Get(client.List(ctx, metav1.ListOptions{Limit: 10}))
	before := len(cases.Get(client.List(ctx, metav1.ListOptions{})).Items)
	cases.Equal("remaining", *first.RemainingItemCount, int64(before-10))
	cases.Must(client.Delete(ctx, "page-24", metav1.DeleteOptions{}))
	rest := cases.Get(client.List(ctx, metav1.ListOptions{Continue: first.Continue}))
	cases.Equal("items of the snapshot", len(rest.Items), before-10)
	cases.Equal("version", rest.ResourceVersion, first.ResourceVersion)

	walked := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.List(ctx, options)
	}))
	walked.PageSize = 7
	seen := 0
	cases.Must(walked.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { seen++; return nil }))
	cases.Equal("items of all pages", seen, before-1)
}
