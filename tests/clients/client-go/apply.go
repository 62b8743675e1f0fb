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

var getOptions metav1.GetOptions

var applyCases = []cases.Case{
	{Name: "typed apply configurations are applied, extracted and in conflict", Run: func(ctx context.Context) { applied(ctx, "application/json") }},
	{Name: "typed apply configurations with answers in protobuf", Run: func(ctx context.Context) { applied(ctx, protobuf) }},
	{Name: "two managers share a custom resource by apply", Run: boatApplied},
}

func applied(ctx context.Context, contentType string) {
	space := namespace(ctx)
	client := speaking(contentType).CoreV1().ConfigMaps(space)
	wanted := applycorev1.ConfigMap("shared", space).WithData(map[string]string{"a": "1", "b": "2"})
	made := cases.Get(client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "first"}))
	again := cases.Get(client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "first"}))
	cases.Equal("version after the same again", again.ResourceVersion, made.ResourceVersion)

	other := applycorev1.ConfigMap("shared", space).WithData(map[string]string{"b": "3", "c": "4"})
	_, err := client.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second"})
	cases.That(apierrors.IsConflict(err), "no conflict: %v", err)
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	cases.Equal("cause", causes, []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "first"`, Field: ".data.b"}})
	cases.Get(client.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "second", Force: true}))

	mine := cases.Get(applycorev1.ExtractConfigMap(cases.Get(client.Get(ctx, "shared", getOptions)), "first"))
	cases.Equal("owned by the first", mine.Data, map[string]string{"a": "1"})
	left := cases.Get(client.Apply(ctx, applycorev1.ConfigMap("shared", space), metav1.ApplyOptions{FieldManager: "second"}))
	cases.Equal("left", left.Data, map[string]string{"a": "1"})
	service := applycorev1.ServiceAccount("robot", space).WithSecrets(applycorev1.ObjectReference().WithName("key"))
	robot := cases.Get(speaking(contentType).CoreV1().ServiceAccounts(space).Apply(ctx, service, metav1.ApplyOptions{FieldManager: "first"}))
	cases.Equal("secrets", robot.Secrets, []corev1.ObjectReference{{Name: "key"}})
}

func boatApplied(ctx context.Context) {
	client := dynamics().Resource(boats).Namespace(namespace(ctx))
	manned := func(names ...any) *unstructured.Unstructured {
		boat := newBoat("anna", 1)
		boat.Object["spec"].(map[string]any)["crew"] = names
		return boat
	}
	hand := func(name, rank string) any { return map[string]any{"name": name, "rank": rank} }
	cases.Get(client.Apply(ctx, "anna", manned(hand("pip", "boy")), metav1.ApplyOptions{FieldManager: "first"}))
	both := cases.Get(client.Apply(ctx, "anna", manned(hand("ahab", "captain")), metav1.ApplyOptions{FieldManager: "second"}))
	cases.Equal("crew", field(both, "spec", "crew"), []any{hand("pip", "boy"), hand("ahab", "captain")})
	_, err := client.Apply(ctx, "anna", manned(hand("ahab", "mate")), metav1.ApplyOptions{FieldManager: "third"})
	cases.That(apierrors.IsConflict(err), "no conflict: %v", err)
	cases.Equal("field", err.(apierrors.APIStatus).Status().Details.Causes[0].Field, `.spec.crew[name="ahab"].rank`)

	afloat := newBoat("anna", 1)
	afloat.Object["spec"] = nil
	delete(afloat.Object, "spec")
	afloat.Object["status"] = map[string]any{"phase": "afloat", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	answer := cases.Get(client.ApplyStatus(ctx, "anna", afloat, metav1.ApplyOptions{FieldManager: "status"}))
	cases.Equal("phase", field(answer, "status", "phase"), "afloat")
	alone := cases.Get(client.Apply(ctx, "anna", newBoat("anna", 1), metav1.ApplyOptions{FieldManager: "first"}))
	cases.Equal("crew", field(alone, "spec", "crew"), []any{hand("ahab", "captain")})
	managers := []string{}
	for _, entry := range alone.GetManagedFields() {
		managers = append(managers, entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource)
	}
	slices.Sort(managers) // they stand by the second of their last write
	cases.Equal("managers", managers, []string{"first Apply ", "second Apply ", "status Apply status"})
}
