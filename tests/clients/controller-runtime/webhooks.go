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

// gate serves the webhooks.
var gate operator

// hooks are the configurations as an operator ships them; envtest sends them to where the gate listens.
func hooks() envtest.WebhookInstallOptions {
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
			Name: "register.harbor.example.com", ClientConfig: at("/mutate-harbor-example-com-v1-boat"), SideEffects: &none,
			AdmissionReviewVersions: reviews, Rules: rules(admissionv1.Create, admissionv1.Update),
		}}}},
		ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "judge.harbor.example.com", ClientConfig: at("/validate-harbor-example-com-v1-boat"), SideEffects: &none,
			AdmissionReviewVersions: reviews, Rules: rules(admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		}}}},
	}
}

// anchors is served in two versions; envtest sees in the scheme that they are converted.
func anchors() *apiextensionsv1.CustomResourceDefinition {
	version := func(name, member, kind string) apiextensionsv1.CustomResourceDefinitionVersion {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{member: {Type: kind}}}
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

func open(ctx context.Context) {
	options := environment.WebhookInstallOptions
	leaving, leave := context.WithCancel(context.Background())
	made := cases.Get(harbor.Gate(connection(), webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	}))
	gate = operator{made, leave, make(chan error, 1)}
	go func() { gate.left <- gate.Start(leaving) }()
	cases.Eventually(ctx, func() string {
		if err := gate.GetWebhookServer().StartedChecker()(nil); err != nil {
			return err.Error()
		}
		return ""
	})
}

// heard keeps warnings.
type heard struct {
	sync.Mutex
	all []string
}

func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.Lock()
	defer h.Unlock()
	h.all = append(h.all, text)
}

func admitted(ctx context.Context) {
	registered := boat("registered")
	cases.Must(api.Create(ctx, registered))
	cases.Equal("registered", registered.Annotations[harbor.Registered], "yes")
	large := boat("large")
	large.Spec.Sails, large.Spec.Port = 11, "Genoa"
	err := api.Create(ctx, large)
	cases.That(apierrors.IsForbidden(err), "a large boat in Genoa: %v", err)
	cases.That(strings.Contains(err.Error(), `admission webhook "judge.harbor.example.com" denied the request: Genoa has no berth`), "%v", err)
	moved := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"sails":12,"port":"Genoa"}}`))
	cases.That(apierrors.IsForbidden(api.Patch(ctx, registered, moved)), "a boat that grows in Genoa")
	told := &heard{}
	loud := rest.CopyConfig(connection())
	loud.WarningHandler = told
	drifting := boat("drifting")
	drifting.Spec.Sails = 0
	cases.Must(cases.Get(client.New(loud, client.Options{Scheme: scheme.Scheme})).Create(ctx, drifting))
	cases.Equal("warnings", told.all, []string{"a boat without sails drifts"})
	sailing := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"harbor.example.com/sailing":"yes"}}}`))
	cases.Must(api.Patch(ctx, registered, sailing))
	cases.That(apierrors.IsForbidden(api.Delete(ctx, registered)), "a boat at sea is scrapped")
	landed := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"harbor.example.com/sailing":null}}}`))
	cases.Must(api.Patch(ctx, registered, landed))
	cases.Must(api.Delete(ctx, registered))
}

func converted(ctx context.Context) {
	meta := metav1.ObjectMeta{Namespace: "lake", Name: "bower"}
	old := &harbor.OldAnchor{ObjectMeta: meta, Spec: harbor.OldAnchorSpec{Weight: "12 kg"}}
	cases.Must(api.Create(ctx, old))
	found := &harbor.Anchor{}
	cases.Must(api.Get(ctx, client.ObjectKeyFromObject(old), found))
	cases.Equal("kilograms", found.Spec.Kilograms, int32(12))
	found.Spec.Kilograms = 15
	cases.Must(api.Update(ctx, found))
	all := &harbor.OldAnchorList{}
	cases.Must(api.List(ctx, all, client.InNamespace("lake")))
	cases.Equal("weight", all.Items[0].Spec.Weight, "15 kg")
	wrong := &harbor.OldAnchor{ObjectMeta: metav1.ObjectMeta{Namespace: "lake", Name: "wrong"}, Spec: harbor.OldAnchorSpec{Weight: "heavy"}}
	err := api.Create(ctx, wrong)
	cases.That(err != nil && strings.Contains(err.Error(), `"heavy" is no weight`), "a weight that is none: %v", err)
	cases.Must(api.Delete(ctx, found))
}

func shut(ctx context.Context) {
	gate.leave()
	select {
	case err := <-gate.left:
		cases.Must(err)
	case <-ctx.Done():
		panic("the gate does not shut")
	}
	err := api.Create(ctx, boat("outside"))
	cases.That(apierrors.IsInternalError(err), "a boat before a shut gate: %v", err)
	for _, configuration := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "harbor"}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "harbor"}},
	} {
		cases.Must(api.Delete(ctx, configuration))
	}
}
