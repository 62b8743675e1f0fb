// Package harbor is an operator: the types Boat and Anchor, the reconciler, which creates a ConfigMap for every Boat, and webhooks.
package harbor

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the one in tests/clients/boats.yaml.
var GroupVersion = schema.GroupVersion{Group: "harbor.example.com", Version: "v1"}

// Hand is a member of the crew.
type Hand struct {
	Name string `json:"name"`
	Rank string `json:"rank,omitempty"`
}

// BoatSpec is the desired state.
type BoatSpec struct {
	Sails    int32  `json:"sails"`
	Port     string `json:"port,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	Crew     []Hand `json:"crew,omitempty"`
}

// BoatStatus is the observed state.
type BoatStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Replicas   int32              `json:"replicas,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Boat is the custom resource of the operator.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BoatSpec   `json:"spec"`
	Status            BoatStatus `json:"status,omitempty"`
}

// BoatList is a list of boats.
type BoatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Boat `json:"items"`
}

// DeepCopy returns a deep copy.
func (b *Boat) DeepCopy() *Boat {
	clone := &Boat{TypeMeta: b.TypeMeta, Spec: b.Spec, Status: b.Status}
	b.ObjectMeta.DeepCopyInto(&clone.ObjectMeta)
	clone.Spec.Crew = append([]Hand(nil), b.Spec.Crew...)
	if b.Spec.Replicas != nil {
		replicas := *b.Spec.Replicas
		clone.Spec.Replicas = &replicas
	}
	clone.Status.Conditions = nil
	for _, condition := range b.Status.Conditions {
		clone.Status.Conditions = append(clone.Status.Conditions, *condition.DeepCopy())
	}
	return clone
}

// DeepCopyObject implements runtime.Object.
func (b *Boat) DeepCopyObject() runtime.Object { return b.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *BoatList) DeepCopyObject() runtime.Object {
	list := &BoatList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		list.Items = append(list.Items, *item.DeepCopy())
	}
	return list
}

// AddToScheme adds the types to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Boat{}, &BoatList{})
	addAnchors(scheme)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
