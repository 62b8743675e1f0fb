package harbor

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// Registered is the annotation that the mutating webhook adds.
	Registered = "harbor.example.com/registered"
	// Sailing is the annotation of a boat that must not be deleted.
	Sailing = "harbor.example.com/sailing"
)

// BoatWebhook defaults and validates boats.
type BoatWebhook struct{}

// Default adds the annotation Registered.
func (BoatWebhook) Default(_ context.Context, boat *Boat) error {
	if boat.Annotations == nil {
		boat.Annotations = map[string]string{}
	}
	boat.Annotations[Registered] = "yes"
	return nil
}

// ValidateCreate denies large boats in Genoa and warns of boats without sails.
func (w BoatWebhook) ValidateCreate(_ context.Context, boat *Boat) (admission.Warnings, error) {
	var warnings admission.Warnings
	if boat.Spec.Sails == 0 {
		warnings = append(warnings, "a boat without sails drifts")
	}
	if boat.Spec.Port == "Genoa" && boat.Spec.Sails > 10 {
		return warnings, errors.New("Genoa has no berth for so many sails")
	}
	return warnings, nil
}

// ValidateUpdate validates the new object, unless it is being deleted.
func (w BoatWebhook) ValidateUpdate(ctx context.Context, _, boat *Boat) (admission.Warnings, error) {
	if !boat.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return w.ValidateCreate(ctx, boat)
}

// ValidateDelete denies the deletion of boats at sea.
func (BoatWebhook) ValidateDelete(_ context.Context, boat *Boat) (admission.Warnings, error) {
	if boat.Annotations[Sailing] != "" {
		return nil, errors.New("the boat is at sea")
	}
	return nil, nil
}

// WebhookManager returns the manager that serves the admission webhooks of boats and the conversion webhook of anchors.
func WebhookManager(connection *rest.Config, options webhook.Options) (manager.Manager, error) {
	manager, err := ctrl.NewManager(connection, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, WebhookServer: webhook.NewServer(options),
	})
	if err != nil {
		return nil, err
	}
	if err := AddToScheme(manager.GetScheme()); err != nil {
		return nil, err
	}
	boats := ctrl.NewWebhookManagedBy(manager, &Boat{}).WithDefaulter(BoatWebhook{}).WithValidator(BoatWebhook{})
	if err := boats.Complete(); err != nil {
		return nil, err
	}
	return manager, ctrl.NewWebhookManagedBy(manager, &Anchor{}).Complete()
}
