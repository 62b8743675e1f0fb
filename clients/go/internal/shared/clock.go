package shared

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const clock = "clock"

// ChangeClock changes fields of the specification of the clock.
func (w *Workspace) ChangeClock(spec map[string]any) error {
	client, err := dynamic.NewForConfig(w.Config())
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	clocks := client.Resource(testing.WithResource("clocks"))
	_, err = clocks.Patch(context.Background(), clock, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, _, err = w.create("clocks", "Clock", clock, spec)
	}
	return err
}

// AdvanceClock advances the clock by a duration.
func (w *Workspace) AdvanceClock(by time.Duration) error {
	client, err := dynamic.NewForConfig(w.Config())
	if err != nil {
		return err
	}
	found, err := client.Resource(testing.WithResource("clocks")).Get(context.Background(), clock, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	// the specification says by how much it has been advanced in all
	if err == nil {
		if text, _, _ := unstructured.NestedString(found.Object, "spec", "advance"); text != "" {
			before, err := time.ParseDuration(text)
			if err != nil {
				return err
			}
			by += before
		}
	}
	return w.ChangeClock(map[string]any{"advance": by.String()})
}

// DeleteClock ends the effect of the clock.
func (w *Workspace) DeleteClock() error {
	client, err := dynamic.NewForConfig(w.Config())
	if err != nil {
		return err
	}
	return client.Resource(testing.WithResource("clocks")).Delete(context.Background(), clock, metav1.DeleteOptions{})
}

// Report returns what the clients have done: the status of a report.
func (w *Workspace) Report() (map[string]any, error) {
	_, report, err := w.create("reports", "Report", "now", map[string]any{})
	if err != nil {
		return nil, err
	}
	status, _, err := unstructured.NestedMap(report.Object, "status")
	return status, err
}
