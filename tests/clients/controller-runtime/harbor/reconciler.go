package harbor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// Moored is the finalizer of a boat, which deletes its mooring.
	Moored = "harbor.example.com/moored"
	// Ready is the condition of a reconciled boat.
	Ready = "Ready"
	// ByPort is the index of boats by port.
	ByPort = "spec.port"
)

// Reconciler creates two ConfigMaps for every boat: a berth, which the boat owns, and a mooring in the namespace Moorings, which
// has no owner and is deleted by the finalizer.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
	Moorings string
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	boat := &Boat{}
	if err := r.Get(ctx, request.NamespacedName, boat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !boat.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, boat)
	}
	if controllerutil.AddFinalizer(boat, Moored) {
		return ctrl.Result{}, r.Update(ctx, boat)
	}
	if err := r.ensureConfigMaps(ctx, boat); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.updateStatus(ctx, boat)
}

func (r *Reconciler) mooring(boat *Boat) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Moorings, Name: string(boat.UID)}}
}

func (r *Reconciler) ensureConfigMaps(ctx context.Context, boat *Boat) error {
	mooring := r.mooring(boat)
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, mooring, func() error {
		mooring.Data = map[string]string{"boat": boat.Name}
		return nil
	}); err != nil {
		return err
	}
	berth := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: boat.Namespace, Name: boat.Name + "-berth"}}
	result, err := controllerutil.CreateOrPatch(ctx, r.Client, berth, func() error {
		berth.Data = map[string]string{"port": boat.Spec.Port, "sails": fmt.Sprint(boat.Spec.Sails)}
		return controllerutil.SetControllerReference(boat, berth, r.Scheme())
	})
	if err == nil && result == controllerutil.OperationResultCreated {
		r.Recorder.Eventf(boat, berth, corev1.EventTypeNormal, "Berthed", "Berthing", "%s got a berth in %s", boat.Name, boat.Spec.Port)
	}
	return err
}

func (r *Reconciler) updateStatus(ctx context.Context, boat *Boat) error {
	before := boat.DeepCopy()
	boat.Status.Phase, boat.Status.Replicas = "afloat", *boat.Spec.Replicas
	meta.SetStatusCondition(&boat.Status.Conditions, metav1.Condition{
		Type: Ready, Status: metav1.ConditionTrue, Reason: "Berthed", ObservedGeneration: boat.Generation,
	})
	return r.Status().Patch(ctx, boat, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (r *Reconciler) finalize(ctx context.Context, boat *Boat) error {
	if err := r.Delete(ctx, r.mooring(boat)); client.IgnoreNotFound(err) != nil {
		return err
	}
	if controllerutil.RemoveFinalizer(boat, Moored) {
		return client.IgnoreNotFound(r.Update(ctx, boat))
	}
	return nil
}

// Manager returns the manager of the operator. It competes for the lease "harbor" in the namespace of moorings. Webhooks are served
// by a separate manager, see WebhookManager: two operators cannot listen on one port.
func Manager(connection *rest.Config, moorings string) (manager.Manager, error) {
	lease, renew, retry, skip := 15*time.Second, 10*time.Second, 100*time.Millisecond, true
	manager, err := ctrl.NewManager(connection, ctrl.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "harbor", LeaderElectionNamespace: moorings, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry,
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		return nil, err
	}
	if err := AddToScheme(manager.GetScheme()); err != nil {
		return nil, err
	}
	if err := manager.GetFieldIndexer().IndexField(context.Background(), &Boat{}, ByPort, func(object client.Object) []string {
		return []string{object.(*Boat).Spec.Port}
	}); err != nil {
		return nil, err
	}
	reconciler := &Reconciler{Client: manager.GetClient(), Recorder: manager.GetEventRecorder("harbor"), Moorings: moorings}
	return manager, ctrl.NewControllerManagedBy(manager).Named("boats").For(&Boat{}).Owns(&corev1.ConfigMap{}).Complete(reconciler)
}
