package main

import (
	"context"
	"slices"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"

	"pintle.test/client-go/cases"
)

var discoveryCases = []cases.Case{
	{Name: "discovery finds the same in both of its forms", Run: discovered},
	{Name: "the version is that of a kube-apiserver", Run: version},
	{Name: "OpenAPI v2 and v3 describe the custom resource", Run: described},
	{Name: "a REST mapper meets a definition that came later", Run: mapped},
}

// discoveryClient asks for JSON: it cannot decode the documents of single versions that a server with CBOR returns.
func discoveryClient() *discovery.DiscoveryClient {
	plain := config()
	plain.ContentType, plain.AcceptContentTypes = "application/json", "application/json"
	return cases.Get(discovery.NewDiscoveryClientForConfig(plain))
}

func discovered(_ context.Context) {
	legacy := discoveryClient()
	legacy.UseLegacyDiscovery = true
	_, old := cases.Get2(legacy.ServerGroupsAndResources())
	_, aggregated := cases.Get2(discoveryClient().ServerGroupsAndResources())
	cases.Equal("lists", len(old), len(aggregated))
	byVersion := map[string][]string{}
	for _, list := range old {
		byVersion[list.GroupVersion] = names(list)
	}
	for _, list := range aggregated {
		cases.Equal(list.GroupVersion, names(list), byVersion[list.GroupVersion])
	}
	cases.Equal("boats", byVersion["harbor.example.com/v1"], []string{"boats", "boats/scale", "boats/status"})
	preferred := cases.Get(discoveryClient().ServerPreferredNamespacedResources())
	cases.That(len(preferred) > 3, "only %d preferred lists", len(preferred))
	_, err := discoveryClient().ServerResourcesForGroupVersion("none.example.com/v1")
	cases.That(apierrors.IsNotFound(err), "a group that is not there: %v", err)
}

func names(list *metav1.APIResourceList) []string {
	found := []string{}
	for _, resource := range list.APIResources {
		found = append(found, resource.Name)
	}
	slices.Sort(found)
	return found
}

func version(_ context.Context) {
	found := cases.Get(discoveryClient().ServerVersion())
	cases.Equal("major", found.Major, "1")
	cases.Equal("minor", found.Minor, "37")
}

func described(_ context.Context) {
	root := openapi3.NewRoot(discoveryClient().OpenAPIV3())
	document := cases.Get(root.GVSpec(boats.GroupVersion()))
	boat, found := document.Components.Schemas["com.example.harbor.v1.Boat"]
	cases.That(found, "the v3 document has no boat")
	cases.Equal("description", boat.Description, "A boat that lies in a harbour.")
	old := cases.Get(discoveryClient().OpenAPISchema())
	cases.That(slices.ContainsFunc(old.GetDefinitions().GetAdditionalProperties(), func(each *openapi_v2.NamedSchema) bool {
		return each.GetName() == "com.example.harbor.v1.Boat"
	}), "the v2 document has no boat")
}

func mapped(ctx context.Context) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoveryClient()))
	kind := schema.GroupKind{Group: "reef.example.com", Kind: "Reef"}
	_, err := mapper.RESTMapping(kind)
	cases.That(meta.IsNoMatchError(err), "a kind that is not there: %v", err)
	definitions := dynamics().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "reefs.reef.example.com"},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Cluster", "names": map[string]any{"plural": "reefs", "kind": "Reef"},
			"versions": []any{
				map[string]any{"name": "v1beta1", "served": true, "storage": false, "schema": openSchema},
				map[string]any{"name": "v1", "served": true, "storage": true, "schema": openSchema},
			},
		},
	}}
	cases.Get(definitions.Create(ctx, definition, metav1.CreateOptions{}))
	cases.Eventually(ctx, func() string {
		mapper.Reset()
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			return err.Error()
		}
		cases.Equal("mapping", mapping.Resource, schema.GroupVersionResource{Group: kind.Group, Version: "v1", Resource: "reefs"})
		cases.Equal("scope", mapping.Scope.Name(), meta.RESTScopeNameRoot)
		return ""
	})
	cases.Equal("one version", cases.Get(mapper.RESTMapping(kind, "v1beta1")).Resource.Version, "v1beta1")
	cases.Must(definitions.Delete(ctx, definition.GetName(), metav1.DeleteOptions{}))
	cases.Eventually(ctx, func() string {
		mapper.Reset()
		if _, err := mapper.RESTMapping(kind); !meta.IsNoMatchError(err) {
			return "the kind is still found"
		}
		return ""
	})
}

var openSchema = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
