# What replicas of HotStuff say to each other, and clients to them. Go code from it: generate.sh.
using Go = import "/go.capnp";

@0xd1f0a36c2b7e4895;

$Go.package("wire");
$Go.import("assay.dev/assay/systems/hotstuff-reference/internal/wire");

interface Replica {
  # Of another replica: what it says from now on, it says to the peer that it gets.
  join @0 (replica :UInt16) -> (peer :Peer);

  # Of a client. The answer comes when the command is executed.
  execute @1 (command :Command) -> ();
}

interface Peer {
  deliver @0 (message :Message) -> ();
}

struct Command {
  client @0 :UInt64;
  sequence @1 :UInt64;
  payload @2 :Data;
}

struct Certificate {
  phase @0 :UInt8;
  view @1 :UInt64;
  block @2 :Data;
  signers @3 :List(UInt16);
  signature @4 :Data;
}

struct Block {
  view @0 :UInt64;
  commands @1 :List(Command);
  justify @2 :Certificate;
}

struct Message {
  union {
    proposal @0 :Proposal;
    vote @1 :Vote;
    announce @2 :Certificate;
    newView @3 :NewView;
    fetch @4 :Fetch;
    blocks @5 :Blocks;
    forward @6 :List(Command);
  }
}

struct Proposal {
  block @0 :Block;
  ancestors @1 :List(Block);
}

struct Vote {
  phase @0 :UInt8;
  view @1 :UInt64;
  block @2 :Data;
  signature @3 :Data;
}

struct NewView {
  view @0 :UInt64;
  highQC @1 :Certificate;
  commitQC @2 :Certificate;
  ask @3 :Bool;
}

struct Fetch {
  block @0 :Data;
  above @1 :UInt64;
}

struct Blocks {
  blocks @0 :List(Block);
  certificate @1 :Certificate;
}
