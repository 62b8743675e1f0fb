// Package clientgo has Pintle's workspaces for clients of client-go and controller-runtime:
//
//	func TestCronTabs(t *testing.T) {
//		config := clientgo.Start(t, pintletest.Options{CRDPaths: []string{"../config/crd"}})
//		client := dynamic.NewForConfigOrDie(config)
//		...
//	}
package clientgo

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pintle/pintle/clients/go/pintle"
	"github.com/pintle/pintle/clients/go/pintletest"
)

// Workspace is a *pintletest.Workspace or a *pintle.Workspace.
type Workspace interface {
	URL() string
	Credentials() pintle.Credentials
	ApplyObjects(ctx context.Context, objects ...any) error
}

// Start returns the configuration of clients of a new workspace, which ends with the test.
func Start(t testing.TB, options ...pintletest.Options) *rest.Config {
	t.Helper()
	return Config(pintletest.New(t, options...))
}

// Config returns the configuration of clients, as a user that may do everything.
//
// It names no proxy: Go uses none for loopback addresses, and a function in Proxy would give each client connections of its own.
func Config(workspace Workspace) *rest.Config {
	credentials := workspace.Credentials()
	return &rest.Config{
		Host: workspace.URL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   []byte(credentials.CertificateAuthority),
			CertData: []byte(credentials.Certificate),
			KeyData:  []byte(credentials.Key),
		},
		// a test waits for nothing that the server does not make it wait for
		QPS: -1,
	}
}

// Apply applies objects server-side: any `client.Object` of controller-runtime, typed or unstructured. One of a kind that is not built in
// needs its `TypeMeta`.
func Apply(ctx context.Context, workspace Workspace, objects ...runtime.Object) error {
	converted := make([]any, len(objects))
	for i, object := range objects {
		var err error
		if converted[i], err = withType(object); err != nil {
			return err
		}
	}
	return workspace.ApplyObjects(ctx, converted...)
}

// withType adds the type of a built-in object, which it need not have.
func withType(object runtime.Object) (any, error) {
	if !object.GetObjectKind().GroupVersionKind().Empty() {
		return object, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("%T has no TypeMeta, and is not built in", object)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Unstructured{Object: fields}
	converted.SetGroupVersionKind(kinds[0])
	return converted, nil
}
