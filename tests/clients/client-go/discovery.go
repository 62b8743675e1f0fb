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
	{Name: "legacy and aggregated discovery agree", Run: discoveryForms},
	{Name: "the server reports version 1.37", Run: serverVersion},
	{Name: "OpenAPI v2 and v3 describe the custom resource", Run: openAPI},
	{Name: "a REST mapper finds a CRD that is created later", Run: restMapper},
}

// discoveryClient requests JSON: client-go cannot decode the discovery documents of single versions in CBOR.
func discoveryClient() *discovery.DiscoveryClient {
	jsonConfig := config()
	jsonConfig.ContentType, jsonConfig.AcceptContentTypes = "application/json", "application/json"
	return cases.Must(discovery.NewDiscoveryClientForConfig(jsonConfig))
}

func discoveryForms(_ context.Context) {
	legacyClient := discoveryClient()
	legacyClient.UseLegacyDiscovery = true
	_, legacy := cases.Must2(legacyClient.ServerGroupsAndResources())
	_, aggregated := cases.Must2(discoveryClient().ServerGroupsAndResources())
	cases.Equal("lists", len(legacy), len(aggregated))
	byVersion := map[string][]string{}
	for _, list := range legacy {
		byVersion[list.GroupVersion] = resourceNames(list)
	}
	for _, list := range aggregated {
		cases.Equal(list.GroupVersion, resourceNames(list), byVersion[list.GroupVersion])
	}
	cases.Equal("boats", byVersion["harbor.example.com/v1"], []string{"boats", "boats/scale", "boats/status"})
	preferred := cases.Must(discoveryClient().ServerPreferredNamespacedResources())
	cases.True(len(preferred) > 3, "only %d preferred lists", len(preferred))
	_, err := discoveryClient().ServerResourcesForGroupVersion("none.example.com/v1")
	cases.True(apierrors.IsNotFound(err), "an unknown group: %v", err)
}

func resourceNames(list *metav1.APIResourceList) []string {
	names := []string{}
	for _, resource := range list.APIResources {
		names = append(names, resource.Name)
	}
	slices.Sort(names)
	return names
}

func serverVersion(_ context.Context) {
	version := cases.Must(discoveryClient().ServerVersion())
	cases.Equal("major", version.Major, "1")
	cases.Equal("minor", version.Minor, "37")
}

func openAPI(_ context.Context) {
	root := openapi3.NewRoot(discoveryClient().OpenAPIV3())
	document := cases.Must(root.GVSpec(boats.GroupVersion()))
	boat, found := document.Components.Schemas["com.example.harbor.v1.Boat"]
	cases.True(found, "the v3 document has no schema of Boat")
	cases.Equal("description", boat.Description, "A boat that lies in a harbour.")
	v2 := cases.Must(discoveryClient().OpenAPISchema())
	cases.True(slices.ContainsFunc(v2.GetDefinitions().GetAdditionalProperties(), func(each *openapi_v2.NamedSchema) bool {
		return each.GetName() == "com.example.harbor.v1.Boat"
	}), "the v2 document has no schema of Boat")
}

func restMapper(ctx context.Context) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoveryClient()))
	kind := schema.GroupKind{Group: "reef.example.com", Kind: "Reef"}
	_, err := mapper.RESTMapping(kind)
	cases.True(meta.IsNoMatchError(err), "an unknown kind: %v", err)
	crds := dynamicClient().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "reefs.reef.example.com"},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Cluster", "names": map[string]any{"plural": "reefs", "kind": "Reef"},
			"versions": []any{
				map[string]any{"name": "v1beta1", "served": true, "storage": false, "schema": schemaWithoutRules},
				map[string]any{"name": "v1", "served": true, "storage": true, "schema": schemaWithoutRules},
			},
		},
	}}
	cases.Must(crds.Create(ctx, crd, metav1.CreateOptions{}))
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
	cases.Equal("requested version", cases.Must(mapper.RESTMapping(kind, "v1beta1")).Resource.Version, "v1beta1")
	cases.NoError(crds.Delete(ctx, crd.GetName(), metav1.DeleteOptions{}))
	cases.Eventually(ctx, func() string {
		mapper.Reset()
		if _, err := mapper.RESTMapping(kind); !meta.IsNoMatchError(err) {
			return "the kind is still mapped"
		}
		return ""
	})
}

var schemaWithoutRules = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
