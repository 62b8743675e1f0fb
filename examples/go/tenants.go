// Package tenants gives each Tenant a namespace of its name, with a quota, and makes its owner the editor of it.
package tenants

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Kind is that of a Tenant.
var Kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tenant"}

// New returns a Tenant without a specification.
func New(name string) *unstructured.Unstructured {
	tenant := &unstructured.Unstructured{}
	tenant.SetGroupVersionKind(Kind)
	tenant.SetName(name)
	return tenant
}

// Manager returns a manager that runs the operator.
func Manager(config *rest.Config) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	// a process may have several of them
	anyName := true
	return manager, ctrl.NewControllerManagedBy(manager).
		For(New("")).
		Owns(&corev1.Namespace{}).Owns(&corev1.ResourceQuota{}).Owns(&rbacv1.RoleBinding{}).
		WithOptions(controller.Options{SkipNameValidation: &anyName}).
		Complete(&reconciler{manager.GetClient()})
}

type reconciler struct{ client.Client }

// Reconcile makes what a tenant has as it should be. What belongs to a tenant that is gone is left to the garbage collector.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	tenant := New(request.Name)
	if err := r.Get(ctx, request.NamespacedName, tenant); err != nil || tenant.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner, _, _ := unstructured.NestedString(tenant.Object, "spec", "owner")
	pods, _, _ := unstructured.NestedInt64(tenant.Object, "spec", "pods")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: request.Name}}
	inside := metav1.ObjectMeta{Name: "tenant", Namespace: request.Name}
	quota, binding := &corev1.ResourceQuota{ObjectMeta: inside}, &rbacv1.RoleBinding{ObjectMeta: inside}
	for _, wanted := range []struct {
		object client.Object
		change func()
	}{
		{namespace, func() {}},
		{quota, func() {
			quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
		}},
		{binding, func() {
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}
			binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: owner}}
		}},
	} {
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, wanted.object, func() error {
			wanted.change()
			return controllerutil.SetControllerReference(tenant, wanted.object, r.Scheme())
		})
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}
