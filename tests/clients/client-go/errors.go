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
	{Name: "every refusal is the error that client-go knows it by", Run: refusals},
	{Name: "an invalid object has its causes", Run: invalid},
	{Name: "writers in conflict all get through by trying again", Run: retried},
	{Name: "warnings reach the handler", Run: warned},
}

func refusals(ctx context.Context) {
	client := dynamics().Resource(boats).Namespace(namespace(ctx))
	_, err := client.Get(ctx, "none", getOptions)
	cases.That(apierrors.IsNotFound(err), "get: %v", err)
	cases.Equal("message", err.Error(), `boats.harbor.example.com "none" not found`)
	made := cases.Get(client.Create(ctx, newBoat("anna", 1), metav1.CreateOptions{}))
	_, err = client.Create(ctx, newBoat("anna", 1), metav1.CreateOptions{})
	cases.That(apierrors.IsAlreadyExists(err), "create again: %v", err)
	cases.Get(client.Patch(ctx, "anna", types.MergePatchType, []byte(`{"spec":{"sails":2}}`), metav1.PatchOptions{}))
	cases.Must(unstructured.SetNestedField(made.Object, int64(3), "spec", "sails"))
	_, err = client.Update(ctx, made, metav1.UpdateOptions{})
	cases.That(apierrors.IsConflict(err), "stale update: %v", err)
	unknown := newBoat("berta", 1)
	unknown.Object["speck"] = "of dust"
	_, err = client.Create(ctx, unknown, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	cases.That(apierrors.IsBadRequest(err), "unknown field: %v", err)
	_, err = client.Patch(ctx, "anna", types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/sails","value":7}]`), metav1.PatchOptions{})
	cases.That(apierrors.IsInvalid(err), "failed test of a patch: %v", err)
	_, err = dynamics().Resource(boats.GroupVersion().WithResource("ghosts")).List(ctx, metav1.ListOptions{})
	cases.That(apierrors.IsNotFound(err), "no such resource: %v", err)
	_, err = client.List(ctx, metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: "Nonsense"})
	cases.That(apierrors.IsInvalid(err), "no such match: %v", err)
	_, err = client.List(ctx, metav1.ListOptions{FieldSelector: "spec.sails=1"})
	cases.That(apierrors.IsBadRequest(err), "not selectable: %v", err)
	_, err = client.List(ctx, metav1.ListOptions{Continue: "nonsense"})
	cases.That(apierrors.IsBadRequest(err), "bad token: %v", err)

	stranger := config()
	stranger.TLSClientConfig.CertData, stranger.TLSClientConfig.KeyData = nil, nil
	stranger.BearerToken = "unknown"
	_, err = cases.Get(dynamic.NewForConfig(stranger)).Resource(boats).List(ctx, metav1.ListOptions{})
	cases.That(apierrors.IsUnauthorized(err), "unknown token: %v", err)
	someone := config()
	someone.Impersonate.UserName = "someone"
	_, err = cases.Get(dynamic.NewForConfig(someone)).Resource(boats).List(ctx, metav1.ListOptions{})
	cases.That(apierrors.IsForbidden(err), "no right: %v", err)
	early := cases.Get(client.Watch(ctx, metav1.ListOptions{ResourceVersion: "99999999"}))
	early.Stop()
	err = typed().CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces").Param("resourceVersion", "99999999").MaxRetries(0).Do(ctx).Error()
	cases.That(apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "from the future: %v", err)
}

func invalid(ctx context.Context) {
	client := dynamics().Resource(boats).Namespace(namespace(ctx))
	asked := newBoat("Anna", 21)
	cases.Must(unstructured.SetNestedField(asked.Object, "Atlantis", "spec", "port"))
	_, err := client.Create(ctx, asked, metav1.CreateOptions{})
	cases.That(apierrors.IsInvalid(err), "created: %v", err)
	var status apierrors.APIStatus
	cases.That(errors.As(err, &status), "no status")
	details := status.Status().Details
	cases.Equal("details", []string{details.Name, details.Group, details.Kind}, []string{"Anna", "harbor.example.com", "Boat"})
	fields := map[string]metav1.CauseType{}
	for _, cause := range details.Causes {
		fields[cause.Field] = cause.Type
	}
	cases.Equal("causes", fields, map[string]metav1.CauseType{
		"metadata.name": metav1.CauseTypeFieldValueInvalid, "spec.sails": metav1.CauseTypeFieldValueInvalid,
		"spec.port": metav1.CauseTypeFieldValueNotSupported,
		"<nil>":     metav1.CauseTypeFieldValueInvalid, // rules were not checked
	})
	ruled := newBoat("anna", 2)
	ruled.Object["spec"].(map[string]any)["crew"] = []any{map[string]any{"name": "pip"}}
	_, err = client.Create(ctx, ruled, metav1.CreateOptions{})
	cases.That(apierrors.IsInvalid(err), "created: %v", err)
	cases.Equal("message", err.Error(), `Boat.harbor.example.com "anna" is invalid: spec: Invalid value: every sail needs a hand`)
	_, err = typed().CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a b"}}, metav1.CreateOptions{})
	cases.That(apierrors.IsInvalid(err), "created: %v", err)
}

func retried(ctx context.Context) {
	client := dynamics().Resource(boats).Namespace(namespace(ctx))
	cases.Get(client.Create(ctx, newBoat("anna", 0), metav1.CreateOptions{}))
	var writers sync.WaitGroup
	var failed atomic.Value
	for range 8 {
		writers.Go(func() {
			backoff := retry.DefaultBackoff
			backoff.Steps = 50
			err := retry.RetryOnConflict(backoff, func() error {
				boat, err := client.Get(ctx, "anna", getOptions)
				if err != nil {
					return err
				}
				boat.Object["spec"].(map[string]any)["sails"] = field(boat, "spec", "sails").(int64) + 1
				_, err = client.Update(ctx, boat, metav1.UpdateOptions{})
				return err
			})
			if err != nil {
				failed.Store(err)
			}
		})
	}
	writers.Wait()
	cases.Equal("failed", failed.Load(), nil)
	cases.Equal("sails", field(cases.Get(client.Get(ctx, "anna", getOptions)), "spec", "sails"), int64(8))
}

// listener keeps the warnings of a client.
type listener struct{ told []string }

func (l *listener) HandleWarningHeader(_ int, _, text string) { l.told = append(l.told, text) }

var _ rest.WarningHandler = &listener{}

func warned(ctx context.Context) {
	heard, made := &listener{}, config()
	made.WarningHandler = heard
	client := cases.Get(dynamic.NewForConfig(made)).Resource(boats).Namespace(namespace(ctx))
	asked := newBoat("anna", 1)
	asked.Object["speck"] = "of dust"
	cases.Get(client.Create(ctx, asked, metav1.CreateOptions{}))
	cases.Equal("warnings", heard.told, []string{`unknown field "speck"`})
}
