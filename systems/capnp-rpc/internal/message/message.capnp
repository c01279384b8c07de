# What is sent: a batch of commands, as one replica of HotStuff sends it to another.
# Go code from it: generate.sh.
using Go = import "/go.capnp";

@0xb3e7c0d94f5a1826;

$Go.package("message");
$Go.import("assay.dev/assay/systems/capnp-rpc/internal/message");

interface Receiver {
  # The answer says what arrived, so that a client sees that all of it was read.
  deliver @0 (commands :List(Data)) -> (commands :UInt32, bytes :UInt64);
}
