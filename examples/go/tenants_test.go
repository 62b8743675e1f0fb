package tenants

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pintle/pintle/clients/go/clientgo"
	"github.com/pintle/pintle/clients/go/pintletest"

	_ "github.com/pintle/pintle/clients/go/embedded"
)

// start runs the operator on an API that the test has for itself, so that all tests run at the same time, and all tenants have the same
// name.
func start(t *testing.T) (*rest.Config, client.Client) {
	t.Parallel()
	config := clientgo.Start(t, pintletest.Options{CRDPaths: []string{"crds"}})
	manager, err := Manager(config)
	if err != nil {
		t.Fatal(err)
	}
	go manager.Start(t.Context())
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return config, c
}

func create(t *testing.T, c client.Client, spec map[string]any) error {
	t.Helper()
	tenant := New("acme")
	tenant.Object["spec"] = spec
	return c.Create(t.Context(), tenant)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s", what)
}

// inside is what the operator puts into the namespace.
func inside() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "acme", Name: "tenant"} }

func has(c client.Client, object client.Object) bool {
	return c.Get(context.Background(), client.ObjectKeyFromObject(object), object) == nil
}

// begin creates a tenant, and returns when it has everything.
func begin(t *testing.T, c client.Client) {
	t.Helper()
	if err := create(t, c, map[string]any{"owner": "ann"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last of its objects", func() bool { return has(c, &rbacv1.RoleBinding{ObjectMeta: inside()}) })
}

func hasPods(c client.Client, pods int64) bool {
	quota := &corev1.ResourceQuota{ObjectMeta: inside()}
	return has(c, quota) && quota.Spec.Hard.Pods().Value() == pods
}

func TestTenantsHaveANamespaceWithTheDefaultQuota(t *testing.T) {
	_, c := start(t)
	begin(t, c)
	if !hasPods(c, 10) {
		t.Fatal("another quota")
	}
}

func TestQuotasFollow(t *testing.T) {
	_, c := start(t)
	begin(t, c)
	if err := c.Patch(t.Context(), New("acme"), client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"pods": 20}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new quota", func() bool { return hasPods(c, 20) })
}

func TestQuotasComeBack(t *testing.T) {
	_, c := start(t)
	begin(t, c)
	if err := c.Delete(t.Context(), &corev1.ResourceQuota{ObjectMeta: inside()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota", func() bool { return hasPods(c, 10) })
}

func TestQuotasHaveBounds(t *testing.T) {
	_, c := start(t)
	for _, pods := range []int64{-1, 101} {
		if err := create(t, c, map[string]any{"owner": "ann", "pods": pods}); !apierrors.IsInvalid(err) {
			t.Errorf("%d pods: %v", pods, err)
		}
	}
}

func TestOwnersEditTheirNamespace(t *testing.T) {
	config, c := start(t)
	begin(t, c)
	ann := rest.CopyConfig(config)
	ann.Impersonate.UserName = "ann"
	hers, err := client.New(ann, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := hers.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: inside()}); err != nil {
		t.Error(err)
	}
	elsewhere := metav1.ObjectMeta{Namespace: "default", Name: "tenant"}
	if err := hers.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: elsewhere}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
}

func TestTenantsEndWithTheirNamespace(t *testing.T) {
	_, c := start(t)
	begin(t, c)
	if err := c.Delete(t.Context(), New("acme")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the namespace", func() bool {
		return !has(c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	})
}
