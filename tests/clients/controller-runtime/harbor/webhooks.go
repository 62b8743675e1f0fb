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
	// Registered is the annotation that every boat gets on its way in.
	Registered = "harbor.example.com/registered"
	// Sailing is the annotation of a boat that must not be scrapped.
	Sailing = "harbor.example.com/sailing"
)

// Warden changes and judges boats before they are stored.
type Warden struct{}

// Default registers a boat.
func (Warden) Default(_ context.Context, boat *Boat) error {
	if boat.Annotations == nil {
		boat.Annotations = map[string]string{}
	}
	boat.Annotations[Registered] = "yes"
	return nil
}

// ValidateCreate lets no large boat into Genoa.
func (w Warden) ValidateCreate(_ context.Context, boat *Boat) (admission.Warnings, error) {
	var warnings admission.Warnings
	if boat.Spec.Sails == 0 {
		warnings = append(warnings, "a boat without sails drifts")
	}
	if boat.Spec.Port == "Genoa" && boat.Spec.Sails > 10 {
		return warnings, errors.New("Genoa has no berth for so many sails")
	}
	return warnings, nil
}

// ValidateUpdate judges the boat as it will be; one that goes away is not stopped any more.
func (w Warden) ValidateUpdate(ctx context.Context, _, boat *Boat) (admission.Warnings, error) {
	if !boat.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return w.ValidateCreate(ctx, boat)
}

// ValidateDelete keeps boats that are at sea.
func (Warden) ValidateDelete(_ context.Context, boat *Boat) (admission.Warnings, error) {
	if boat.Annotations[Sailing] != "" {
		return nil, errors.New("the boat is at sea")
	}
	return nil, nil
}

// Gate makes the manager that serves the webhooks of boats, and the conversion of anchors, at these options.
func Gate(connection *rest.Config, options webhook.Options) (manager.Manager, error) {
	made, err := ctrl.NewManager(connection, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, WebhookServer: webhook.NewServer(options),
	})
	if err != nil {
		return nil, err
	}
	if err := AddToScheme(made.GetScheme()); err != nil {
		return nil, err
	}
	boats := ctrl.NewWebhookManagedBy(made, &Boat{}).WithDefaulter(Warden{}).WithValidator(Warden{})
	if err := boats.Complete(); err != nil {
		return nil, err
	}
	return made, ctrl.NewWebhookManagedBy(made, &Anchor{}).Complete()
}
