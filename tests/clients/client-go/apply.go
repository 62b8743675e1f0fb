package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"pintle.test/client-go/cases"
)

var applyCases = []cases.Case{
	{Name: "typed apply configurations: apply, extract and conflict, in JSON", Run: func(ctx context.Context) { applyTyped(ctx, "application/json") }},
	{Name: "typed apply configurations: apply, extract and conflict, in protobuf", Run: func(ctx context.Context) { applyTyped(ctx, protobuf) }},
	{Name: "two field managers apply parts of a custom resource", Run: applyCustomResource},
}

func applyTyped(ctx context.Context, contentType string) {
	ns := newNamespace(ctx)
	client := clientFor(contentType).CoreV1().ConfigMaps(ns)
	configuration := applycorev1.ConfigMap("shared", ns).WithData(map[string]string{"a": "1", "b": "2"})
	created := cases.Must(client.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "first"}))
	unchanged := cases.Must(client.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "first"}))
	cases.Equal("resourceVersion after the same configuration again", unchanged.ResourceVersion, created.ResourceVersion)

	other := applycorev1.ConfigMap("shared", ns).WithData(map[string]string{"b": "3", "c": "4"})
	_, err := client.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second"})
	cases.True(apierrors.IsConflict(err), "no conflict: %v", err)
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	cases.Equal("cause", causes, []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "first"`, Field: ".data.b"}})
	cases.Must(client.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second", Force: true}))

	owned := cases.Must(applycorev1.ExtractConfigMap(cases.Must(client.Get(ctx, "shared", metav1.GetOptions{})), "first"))
	cases.Equal("data owned by the first manager", owned.Data, map[string]string{"a": "1"})
	remaining := cases.Must(client.Apply(ctx, applycorev1.ConfigMap("shared", ns), metav1.ApplyOptions{FieldManager: "second"}))
	cases.Equal("remaining data", remaining.Data, map[string]string{"a": "1"})
	account := applycorev1.ServiceAccount("robot", ns).WithSecrets(applycorev1.ObjectReference().WithName("key"))
	applied := cases.Must(clientFor(contentType).CoreV1().ServiceAccounts(ns).Apply(ctx, account, metav1.ApplyOptions{FieldManager: "first"}))
	cases.Equal("secrets", applied.Secrets, []corev1.ObjectReference{{Name: "key"}})
}

func applyCustomResource(ctx context.Context) {
	client := dynamicClient().Resource(boats).Namespace(newNamespace(ctx))
	withCrew := func(names ...any) *unstructured.Unstructured {
		boat := newBoat("anna", 1)
		boat.Object["spec"].(map[string]any)["crew"] = names
		return boat
	}
	member := func(name, rank string) any { return map[string]any{"name": name, "rank": rank} }
	cases.Must(client.Apply(ctx, "anna", withCrew(member("pip", "boy")), metav1.ApplyOptions{FieldManager: "first"}))
	both := cases.Must(client.Apply(ctx, "anna", withCrew(member("ahab", "captain")), metav1.ApplyOptions{FieldManager: "second"}))
	cases.Equal("crew", field(both, "spec", "crew"), []any{member("pip", "boy"), member("ahab", "captain")})
	_, err := client.Apply(ctx, "anna", withCrew(member("ahab", "mate")), metav1.ApplyOptions{FieldManager: "third"})
	cases.True(apierrors.IsConflict(err), "no conflict: %v", err)
	cases.Equal("field", err.(apierrors.APIStatus).Status().Details.Causes[0].Field, `.spec.crew[name="ahab"].rank`)

	status := newBoat("anna", 1)
	status.Object["spec"] = nil
	delete(status.Object, "spec")
	status.Object["status"] = map[string]any{"phase": "afloat", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	updated := cases.Must(client.ApplyStatus(ctx, "anna", status, metav1.ApplyOptions{FieldManager: "status"}))
	cases.Equal("phase", field(updated, "status", "phase"), "afloat")
	shared := cases.Must(client.Apply(ctx, "anna", newBoat("anna", 1), metav1.ApplyOptions{FieldManager: "first"}))
	cases.Equal("crew", field(shared, "spec", "crew"), []any{member("ahab", "captain")})
	managers := []string{}
	for _, entry := range shared.GetManagedFields() {
		managers = append(managers, entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource)
	}
	slices.Sort(managers) // entries are ordered by time, in seconds
	cases.Equal("managers", managers, []string{"first Apply ", "second Apply ", "status Apply status"})
}
