package harbor

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

// OldVersion is the version in which the weight is a string.
var OldVersion = schema.GroupVersion{Group: "harbor.example.com", Version: "v1beta1"}

// Anchor is the storage version.
type Anchor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              AnchorSpec `json:"spec"`
}

// AnchorSpec has the weight as a number.
type AnchorSpec struct {
	Kilograms int32 `json:"kilograms"`
}

// OldAnchor is an Anchor in v1beta1.
type OldAnchor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              OldAnchorSpec `json:"spec"`
}

// OldAnchorSpec has the weight as a string, such as "12 kg".
type OldAnchorSpec struct {
	Weight string `json:"weight"`
}

// AnchorList is a list of anchors.
type AnchorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Anchor `json:"items"`
}

// OldAnchorList is a list of anchors in v1beta1.
type OldAnchorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OldAnchor `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (a *Anchor) DeepCopyObject() runtime.Object {
	return &Anchor{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy(), Spec: a.Spec}
}

// DeepCopyObject implements runtime.Object.
func (a *OldAnchor) DeepCopyObject() runtime.Object {
	return &OldAnchor{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy(), Spec: a.Spec}
}

// DeepCopyObject implements runtime.Object.
func (l *AnchorList) DeepCopyObject() runtime.Object {
	list := &AnchorList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		list.Items = append(list.Items, *item.DeepCopyObject().(*Anchor))
	}
	return list
}

// DeepCopyObject implements runtime.Object.
func (l *OldAnchorList) DeepCopyObject() runtime.Object {
	list := &OldAnchorList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for _, item := range l.Items {
		list.Items = append(list.Items, *item.DeepCopyObject().(*OldAnchor))
	}
	return list
}

// Hub marks the version to and from which all others are converted.
func (a *Anchor) Hub() {}

// ConvertTo converts to the storage version.
func (a *OldAnchor) ConvertTo(to conversion.Hub) error {
	anchor := to.(*Anchor)
	anchor.ObjectMeta = a.ObjectMeta
	if _, err := fmt.Sscanf(a.Spec.Weight, "%d kg", &anchor.Spec.Kilograms); err != nil {
		return fmt.Errorf("%q is not a weight", a.Spec.Weight)
	}
	return nil
}

// ConvertFrom converts from the storage version.
func (a *OldAnchor) ConvertFrom(from conversion.Hub) error {
	anchor := from.(*Anchor)
	a.ObjectMeta = anchor.ObjectMeta
	a.Spec.Weight = fmt.Sprintf("%d kg", anchor.Spec.Kilograms)
	return nil
}

func addAnchors(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(GroupVersion, &Anchor{}, &AnchorList{})
	scheme.AddKnownTypeWithName(OldVersion.WithKind("Anchor"), &OldAnchor{})
	scheme.AddKnownTypeWithName(OldVersion.WithKind("AnchorList"), &OldAnchorList{})
	metav1.AddToGroupVersion(scheme, OldVersion)
}
