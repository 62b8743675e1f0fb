package main

import (
	"context"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"pintle.test/client-go/cases"
	"pintle.test/controller-runtime/harbor"
)

// webhookManager serves the webhooks.
var webhookManager operator

// webhooks returns the configurations as an operator ships them; envtest replaces their service by the address of the webhook
// server.
func webhooks() envtest.WebhookInstallOptions {
	rules := func(operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		rule := admissionv1.Rule{APIGroups: []string{"harbor.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"boats"}}
		return []admissionv1.RuleWithOperations{{Operations: operations, Rule: rule}}
	}
	none, reviews := admissionv1.SideEffectClassNone, []string{"v1"}
	at := func(path string) admissionv1.WebhookClientConfig {
		service := admissionv1.ServiceReference{Namespace: "moorings", Name: "harbor", Path: &path}
		return admissionv1.WebhookClientConfig{Service: &service}
	}
	meta := metav1.ObjectMeta{Name: "harbor"}
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionv1.MutatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{{
			Name: "default.harbor.example.com", ClientConfig: at("/mutate-harbor-example-com-v1-boat"), SideEffects: &none,
			AdmissionReviewVersions: reviews, Rules: rules(admissionv1.Create, admissionv1.Update),
		}}}},
		ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "validate.harbor.example.com", ClientConfig: at("/validate-harbor-example-com-v1-boat"), SideEffects: &none,
			AdmissionReviewVersions: reviews, Rules: rules(admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		}}}},
	}
}

// anchorCRD is served in two versions. The type in the scheme is convertible, so that envtest configures the conversion webhook.
func anchorCRD() *apiextensionsv1.CustomResourceDefinition {
	version := func(name, property, kind string) apiextensionsv1.CustomResourceDefinitionVersion {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{property: {Type: kind}}}
		schema := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}}
		validation := apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: name == "v1", Schema: &validation}
	}
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "anchors", Singular: "anchor", Kind: "Anchor", ListKind: "AnchorList"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "anchors.harbor.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "harbor.example.com", Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", "kilograms", "integer"), version("v1beta1", "weight", "string")},
		},
	}
}

func startWebhooks(ctx context.Context) {
	options := environment.WebhookInstallOptions
	webhookManager = startManager(cases.Must(harbor.WebhookManager(connection(), webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	})))
	cases.Eventually(ctx, func() string {
		if err := webhookManager.GetWebhookServer().StartedChecker()(nil); err != nil {
			return err.Error()
		}
		return ""
	})
}

// warningRecorder keeps the warnings of a client.
type warningRecorder struct {
	sync.Mutex
	warnings []string
}

func (r *warningRecorder) HandleWarningHeader(_ int, _, text string) {
	r.Lock()
	defer r.Unlock()
	r.warnings = append(r.warnings, text)
}

func admission(ctx context.Context) {
	registered := newBoat("registered")
	cases.NoError(api.Create(ctx, registered))
	cases.Equal("registered", registered.Annotations[harbor.Registered], "yes")
	large := newBoat("large")
	large.Spec.Sails, large.Spec.Port = 11, "Genoa"
	err := api.Create(ctx, large)
	cases.True(apierrors.IsForbidden(err), "a large boat in Genoa: %v", err)
	cases.True(strings.Contains(err.Error(), `admission webhook "validate.harbor.example.com" denied the request: Genoa has no berth`), "%v", err)
	moved := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"sails":12,"port":"Genoa"}}`))
	cases.True(apierrors.IsForbidden(api.Patch(ctx, registered, moved)), "an update to a large boat in Genoa")
	recorder := &warningRecorder{}
	config := rest.CopyConfig(connection())
	config.WarningHandler = recorder
	drifting := newBoat("drifting")
	drifting.Spec.Sails = 0
	cases.NoError(cases.Must(client.New(config, client.Options{Scheme: scheme.Scheme})).Create(ctx, drifting))
	cases.Equal("warnings", recorder.warnings, []string{"a boat without sails drifts"})
	sailing := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"harbor.example.com/sailing":"yes"}}}`))
	cases.NoError(api.Patch(ctx, registered, sailing))
	cases.True(apierrors.IsForbidden(api.Delete(ctx, registered)), "a boat at sea was deleted")
	landed := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"harbor.example.com/sailing":null}}}`))
	cases.NoError(api.Patch(ctx, registered, landed))
	cases.NoError(api.Delete(ctx, registered))
}

func conversion(ctx context.Context) {
	meta := metav1.ObjectMeta{Namespace: "lake", Name: "bower"}
	old := &harbor.OldAnchor{ObjectMeta: meta, Spec: harbor.OldAnchorSpec{Weight: "12 kg"}}
	cases.NoError(api.Create(ctx, old))
	current := &harbor.Anchor{}
	cases.NoError(api.Get(ctx, client.ObjectKeyFromObject(old), current))
	cases.Equal("kilograms", current.Spec.Kilograms, int32(12))
	current.Spec.Kilograms = 15
	cases.NoError(api.Update(ctx, current))
	oldAnchors := &harbor.OldAnchorList{}
	cases.NoError(api.List(ctx, oldAnchors, client.InNamespace("lake")))
	cases.Equal("weight", oldAnchors.Items[0].Spec.Weight, "15 kg")
	invalid := &harbor.OldAnchor{ObjectMeta: metav1.ObjectMeta{Namespace: "lake", Name: "wrong"}, Spec: harbor.OldAnchorSpec{Weight: "heavy"}}
	err := api.Create(ctx, invalid)
	cases.True(err != nil && strings.Contains(err.Error(), `"heavy" is not a weight`), "an invalid weight: %v", err)
	cases.NoError(api.Delete(ctx, current))
}

func stopWebhooks(ctx context.Context) {
	webhookManager.stop()
	select {
	case err := <-webhookManager.stopped:
		cases.NoError(err)
	case <-ctx.Done():
		panic("timeout: the webhook server does not stop")
	}
	err := api.Create(ctx, newBoat("outside"))
	cases.True(apierrors.IsInternalError(err), "a request with an unavailable webhook: %v", err)
	for _, configuration := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "harbor"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "harbor"}},
	} {
		cases.NoError(api.Delete(ctx, configuration))
	}
}
