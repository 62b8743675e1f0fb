// Package suite has tests that packages run beside each other, as those of an operator are.
package suite

import (
	"context"
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pintle/pintle/clients/go/clientgo"
	"github.com/pintle/pintle/clients/go/pintle"
	"github.com/pintle/pintle/clients/go/pintletest"

	_ "github.com/pintle/pintle/clients/go/embedded"
)

// Boats are the resource of the tests.
var Boats = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"}

// Boat is one of them.
func Boat(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Boat", "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{},
	}}
}

// Fleet is a template with one more boat.
func Fleet(t *testing.T, options pintletest.Options) *pintletest.Template {
	return pintletest.NewTemplate(t, "fleet", func(workspace *pintle.Workspace) error {
		return workspace.ApplyObjects(context.Background(), Boat("rose"))
	}, options)
}

// Run runs 50 tests in parallel, each of which wants to be the only writer.
func Run(t *testing.T) {
	if os.Getenv("SUITES") == "" {
		t.Skip("TestSuitesLeaveNothing runs it")
	}
	for i := range 50 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			boats := dynamic.NewForConfigOrDie(clientgo.Start(t, pintletest.Options{CRDPaths: []string{"../../testdata/boats/z-crd.yaml"}})).Resource(Boats).Namespace("default")
			if _, err := boats.Create(context.Background(), Boat("argo"), metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			found, err := boats.List(context.Background(), metav1.ListOptions{})
			if err != nil || len(found.Items) != 1 {
				t.Error(found, err)
			}
		})
	}
}
