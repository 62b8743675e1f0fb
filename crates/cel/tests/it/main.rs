//! Recorded exchanges with kube-apiserver, replayed on the rules of CRDs and objects.

mod language;
mod measured;
mod place;
mod random;
mod replay;
mod robust;
mod texts;
