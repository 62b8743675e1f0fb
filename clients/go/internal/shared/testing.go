package shared

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var testing = schema.GroupVersion{Group: "testing.pintle.dev", Version: "v1alpha1"}

// Fault makes requests or events of a workspace fail.
type Fault struct {
	client dynamic.ResourceInterface
	name   string
}

func (w *Workspace) create(resource, kind, name string, spec map[string]any) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(w.Config())
	if err != nil {
		return nil, nil, err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": testing.String(), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	objects := client.Resource(testing.WithResource(resource))
	created, err := objects.Create(context.Background(), object, metav1.CreateOptions{})
	return objects, created, err
}

// Fault creates a fault with its specification.
func (w *Workspace) Fault(spec map[string]any) (*Fault, error) {
	name := "fault-" + random()
	client, _, err := w.create("faults", "Fault", name, spec)
	return &Fault{client, name}, err
}

// Hits returns the number of requests and events that a fault has hit.
func (f *Fault) Hits() (int64, error) {
	found, err := f.client.Get(context.Background(), f.name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	hits, _, err := unstructured.NestedInt64(found.Object, "status", "hits")
	return hits, err
}

// Delete ends the effect of a fault.
func (f *Fault) Delete() error {
	return f.client.Delete(context.Background(), f.name, metav1.DeleteOptions{})
}

// Settle returns when nothing happens any more, with the fields of its specification.
func (w *Workspace) Settle(spec map[string]any) error {
	_, settle, err := w.create("settles", "Settle", "now", spec)
	if err != nil {
		return err
	}
	if isSettled, _, _ := unstructured.NestedBool(settle.Object, "status", "settled"); isSettled {
		return nil
	}
	message, _, _ := unstructured.NestedString(settle.Object, "status", "message")
	return fmt.Errorf("not settled: %s", message)
}
