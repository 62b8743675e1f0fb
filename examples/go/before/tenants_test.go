// Package before has the tests as they were with envtest: one API for all of them, so that each has a tenant of another name, and nothing
// that collects what a tenant owns, ends namespaces, or gives rules to the ClusterRole edit. KUBEBUILDER_ASSETS names its programs.
package before

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/tenants"
)

var c client.Client

func TestMain(m *testing.M) {
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../crds"}, ErrorIfCRDPathMissing: true}
	code, err := run(m, environment)
	if stopped := environment.Stop(); err == nil {
		err = stopped
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, environment *envtest.Environment) (int, error) {
	config, err := environment.Start()
	if err != nil {
		return 0, err
	}
	manager, err := tenants.Manager(config)
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go manager.Start(ctx)
	if c, err = client.New(config, client.Options{}); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func create(t *testing.T, name string, spec map[string]any) error {
	t.Helper()
	tenant := tenants.New(name)
	tenant.Object["spec"] = spec
	t.Cleanup(func() { c.Delete(context.Background(), tenant) })
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

func inside(tenant string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: tenant, Name: "tenant"}
}

func has(object client.Object) bool {
	return c.Get(context.Background(), client.ObjectKeyFromObject(object), object) == nil
}

func begin(t *testing.T, tenant string) {
	t.Helper()
	if err := create(t, tenant, map[string]any{"owner": "ann"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last of its objects", func() bool { return has(&rbacv1.RoleBinding{ObjectMeta: inside(tenant)}) })
}

func hasPods(tenant string, pods int64) bool {
	quota := &corev1.ResourceQuota{ObjectMeta: inside(tenant)}
	return has(quota) && quota.Spec.Hard.Pods().Value() == pods
}

func TestTenantsHaveANamespaceWithTheDefaultQuota(t *testing.T) {
	begin(t, "defaults")
	if !hasPods("defaults", 10) {
		t.Fatal("another quota")
	}
}

func TestQuotasFollow(t *testing.T) {
	begin(t, "follows")
	if err := c.Patch(t.Context(), tenants.New("follows"), client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"pods": 20}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new quota", func() bool { return hasPods("follows", 20) })
}

func TestQuotasComeBack(t *testing.T) {
	begin(t, "comes-back")
	if err := c.Delete(t.Context(), &corev1.ResourceQuota{ObjectMeta: inside("comes-back")}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota", func() bool { return hasPods("comes-back", 10) })
}

func TestQuotasHaveBounds(t *testing.T) {
	for _, pods := range []int64{-1, 101} {
		if err := create(t, "bounds", map[string]any{"owner": "ann", "pods": pods}); !apierrors.IsInvalid(err) {
			t.Errorf("%d pods: %v", pods, err)
		}
	}
}

func TestOwnersAreBound(t *testing.T) {
	begin(t, "bound")
	binding := &rbacv1.RoleBinding{ObjectMeta: inside("bound")}
	if !has(binding) || binding.Subjects[0].Name != "ann" || binding.RoleRef.Name != "edit" {
		t.Fatal(binding)
	}
}

func TestNamespacesHaveAnOwner(t *testing.T) {
	begin(t, "owned")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "owned"}}
	if !has(namespace) {
		t.Fatal("no namespace")
	}
	if owner := metav1.GetControllerOf(namespace); owner == nil || owner.Name != "owned" {
		t.Fatal(namespace)
	}
}
