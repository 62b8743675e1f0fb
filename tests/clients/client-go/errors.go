package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"pintle.test/client-go/cases"
)

var errorCases = []cases.Case{
	{Name: "errors have the reasons that apierrors checks", Run: errorReasons},
	{Name: "an invalid object is rejected with a cause for each field", Run: invalidObject},
	{Name: "RetryOnConflict lets all concurrent writers succeed", Run: retryOnConflict},
	{Name: "warnings reach the warning handler", Run: warnings},
}

func errorReasons(ctx context.Context) {
	client := dynamicClient().Resource(boats).Namespace(newNamespace(ctx))
	_, err := client.Get(ctx, "none", metav1.GetOptions{})
	cases.True(apierrors.IsNotFound(err), "get: %v", err)
	cases.Equal("message", err.Error(), `boats.harbor.example.com "none" not found`)
	stale := cases.Must(client.Create(ctx, newBoat("anna", 1), metav1.CreateOptions{}))
	_, err = client.Create(ctx, newBoat("anna", 1), metav1.CreateOptions{})
	cases.True(apierrors.IsAlreadyExists(err), "create again: %v", err)
	cases.Must(client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"spec":{"sails":2}}`), metav1.PatchOptions{}))
	cases.NoError(unstructured.SetNestedField(stale.Object, int64(3), "spec", "sails"))
	_, err = client.Update(ctx, stale, metav1.UpdateOptions{})
	cases.True(apierrors.IsConflict(err), "stale update: %v", err)
	unknown := newBoat("berta", 1)
	unknown.Object["speck"] = "of dust"
	_, err = client.Create(ctx, unknown, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	cases.True(apierrors.IsBadRequest(err), "unknown field: %v", err)
	_, err = client.Patch(ctx, "anna", types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/sails","value":7}]`), metav1.PatchOptions{})
	cases.True(apierrors.IsInvalid(err), "failed test of a patch: %v", err)
	_, err = dynamicClient().Resource(boats.GroupVersion().WithResource("ghosts")).List(ctx, metav1.ListOptions{})
	cases.True(apierrors.IsNotFound(err), "an unknown resource: %v", err)
	_, err = client.List(ctx, metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: "Nonsense"})
	cases.True(apierrors.IsInvalid(err), "an invalid resourceVersionMatch: %v", err)
	_, err = client.List(ctx, metav1.ListOptions{FieldSelector: "spec.sails=1"})
	cases.True(apierrors.IsBadRequest(err), "a field that is not selectable: %v", err)
	_, err = client.List(ctx, metav1.ListOptions{Continue: "nonsense"})
	cases.True(apierrors.IsBadRequest(err), "an invalid continue token: %v", err)

	unauthenticated := config()
	unauthenticated.TLSClientConfig.CertData, unauthenticated.TLSClientConfig.KeyData = nil, nil
	unauthenticated.BearerToken = "unknown"
	_, err = cases.Must(dynamic.NewForConfig(unauthenticated)).Resource(boats).List(ctx, metav1.ListOptions{})
	cases.True(apierrors.IsUnauthorized(err), "unknown token: %v", err)
	impersonating := config()
	impersonating.Impersonate.UserName = "someone"
	_, err = cases.Must(dynamic.NewForConfig(impersonating)).Resource(boats).List(ctx, metav1.ListOptions{})
	cases.True(apierrors.IsForbidden(err), "a user without permissions: %v", err)
	future := cases.Must(client.Watch(ctx, metav1.ListOptions{ResourceVersion: "99999999"}))
	future.Stop()
	err = typedClient().CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces").Param("resourceVersion", "99999999").MaxRetries(0).Do(ctx).Error()
	cases.True(apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "a list at a future resourceVersion: %v", err)
}

func invalidObject(ctx context.Context) {
	client := dynamicClient().Resource(boats).Namespace(newNamespace(ctx))
	boat := newBoat("Anna", 21)
	cases.NoError(unstructured.SetNestedField(boat.Object, "Atlantis", "spec", "port"))
	_, err := client.Create(ctx, boat, metav1.CreateOptions{})
	cases.True(apierrors.IsInvalid(err), "not invalid: %v", err)
	var status apierrors.APIStatus
	cases.True(errors.As(err, &status), "the error has no status")
	details := status.Status().Details
	cases.Equal("details", []string{details.Name, details.Group, details.Kind}, []string{"Anna", "harbor.example.com", "Boat"})
	fields := map[string]metav1.CauseType{}
	for _, cause := range details.Causes {
		fields[cause.Field] = cause.Type
	}
	cases.Equal("causes", fields, map[string]metav1.CauseType{
		"metadata.name": metav1.CauseTypeFieldValueInvalid, "spec.sails": metav1.CauseTypeFieldValueInvalid,
		"spec.port": metav1.CauseTypeFieldValueNotSupported,
		"<nil>":     metav1.CauseTypeFieldValueInvalid, // validation rules are not evaluated
	})
	withoutCrew := newBoat("anna", 2)
	withoutCrew.Object["spec"].(map[string]any)["crew"] = []any{map[string]any{"name": "pip"}}
	_, err = client.Create(ctx, withoutCrew, metav1.CreateOptions{})
	cases.True(apierrors.IsInvalid(err), "not invalid: %v", err)
	cases.Equal("message", err.Error(), `Boat.harbor.example.com "anna" is invalid: spec: Invalid value: every sail needs a hand`)
	_, err = typedClient().CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a b"}}, metav1.CreateOptions{})
	cases.True(apierrors.IsInvalid(err), "not invalid: %v", err)
}

func retryOnConflict(ctx context.Context) {
	client := dynamicClient().Resource(boats).Namespace(newNamespace(ctx))
	cases.Must(client.Create(ctx, newBoat("anna", 0), metav1.CreateOptions{}))
	var writers sync.WaitGroup
	var failure atomic.Value
	for range 8 {
		writers.Go(func() {
			backoff := retry.DefaultBackoff
			backoff.Steps = 50
			err := retry.RetryOnConflict(backoff, func() error {
				boat, err := client.Get(ctx, "anna", metav1.GetOptions{})
				if err != nil {
					return err
				}
				boat.Object["spec"].(map[string]any)["sails"] = field(boat, "spec", "sails").(int64) + 1
				_, err = client.Update(ctx, boat, metav1.UpdateOptions{})
				return err
			})
			if err != nil {
				failure.Store(err)
			}
		})
	}
	writers.Wait()
	cases.Equal("failure", failure.Load(), nil)
	cases.Equal("sails", field(cases.Must(client.Get(ctx, "anna", metav1.GetOptions{})), "spec", "sails"), int64(8))
}

// warningRecorder keeps the warnings of a client.
type warningRecorder struct{ warnings []string }

func (r *warningRecorder) HandleWarningHeader(_ int, _, text string) {
	r.warnings = append(r.warnings, text)
}

var _ rest.WarningHandler = &warningRecorder{}

func warnings(ctx context.Context) {
	recorder, clientConfig := &warningRecorder{}, config()
	clientConfig.WarningHandler = recorder
	client := cases.Must(dynamic.NewForConfig(clientConfig)).Resource(boats).Namespace(newNamespace(ctx))
	boat := newBoat("anna", 1)
	boat.Object["speck"] = "of dust"
	cases.Must(client.Create(ctx, boat, metav1.CreateOptions{}))
	cases.Equal("warnings", recorder.warnings, []string{`unknown field "speck"`})
}
