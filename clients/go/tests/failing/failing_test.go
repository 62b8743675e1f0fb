// Package failing has tests that fail, which others run.
package failing

import (
	"context"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pintle/pintle/clients/go/pintletest"

	_ "github.com/pintle/pintle/clients/go/embedded"
)

func TestFails(t *testing.T) {
	if os.Getenv("FAILING") == "" {
		t.Skip("TestFailuresShowTheWorkspace runs it")
	}
	workspace := pintletest.New(t)
	rule := map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"configmaps"}}
	webhook := map[string]any{
		"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
		// where nothing listens
		"clientConfig": map[string]any{"url": "https://127.0.0.1:1/"}, "rules": []any{rule},
	}
	err := workspace.ApplyObjects(context.Background(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
			"metadata": map[string]any{"name": "a"}, "webhooks": []any{webhook},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "default"},
		}},
	)
	t.Error("as wanted", err)
}

func TestWrongFlags(t *testing.T) {
	if os.Getenv("FAILING") == "" {
		t.Skip("TestWhatIsWrongIsOneLine runs it")
	}
	pintletest.New(t, pintletest.Options{Flags: []string{"--no-such-flag"}})
}
