// Package harbor is an operator: its type Boat and the reconciler that gives every boat a berth.
package harbor

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of tests/clients/boats.yaml.
var GroupVersion = schema.GroupVersion{Group: "harbor.example.com", Version: "v1"}

// Hand is one of a boat's crew.
type Hand struct {
	Name string `json:"name"`
	Rank string `json:"rank,omitempty"`
}

// BoatSpec is what the owner wants.
type BoatSpec struct {
	Sails    int32  `json:"sails"`
	Port     string `json:"port,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	Crew     []Hand `json:"crew,omitempty"`
}

// BoatStatus is what the operator found.
type BoatStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Replicas   int32              `json:"replicas,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Boat lies in a harbour.
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

// DeepCopy answers a boat that shares nothing with this one.
func (b *Boat) DeepCopy() *Boat {
	made := &Boat{TypeMeta: b.TypeMeta, Spec: b.Spec, Status: b.Status}
	b.ObjectMeta.DeepCopyInto(&made.ObjectMeta)
	made.Spec.Crew = append([]Hand(nil), b.Spec.Crew...)
	if b.Spec.Replicas != nil {
		replicas := *b.Spec.Replicas
		made.Spec.Replicas = &replicas
	}
	made.Status.Conditions = nil
	for _, condition := range b.Status.Conditions {
		made.Status.Conditions = append(made.Status.Conditions, *condition.DeepCopy())
	}
	return made
}

// DeepCopyObject is what runtime.Object asks for.
func (b *Boat) DeepCopyObject() runtime.Object { return b.DeepCopy() }

// DeepCopyObject is what runtime.Object asks for.
func (l *BoatList) DeepCopyObject() runtime.Object {
	made := &BoatList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		made.Items = append(made.Items, *item.DeepCopy())
	}
	return made
}

// AddToScheme makes the types known.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Boat{}, &BoatList{})
	addAnchors(scheme)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
