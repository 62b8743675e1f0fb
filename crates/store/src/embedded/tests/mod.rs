//! The log on a simulated disk: crashes at every step, full disks, flipped bits.

mod crash;
mod damage;
mod full;
mod model;
mod salvage;
mod sim;
