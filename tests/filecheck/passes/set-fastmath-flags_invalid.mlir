// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=nnan match="arith.addi"}' --verify-diagnostics | filecheck %s --check-prefix=INTEGER
// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=nnnan}' --verify-diagnostics | filecheck %s --check-prefix=UNKNOWN
// RUN: halfulp-opt %s -p 'set-fastmath-flags{flags=nnan match=addd}' --verify-diagnostics | filecheck %s --check-prefix=NOTHING
// RUN: halfulp-opt %s -p 'clear-fastmath-flags{flags=contact}' --verify-diagnostics | filecheck %s --check-prefix=CLEAR

func.func @integers(%n: i32) {
  %0 = arith.addi %n, %n : i32
  func.return
}

// INTEGER: set-fastmath-flags: arith.addi computes no float here, so it carries no fastmath flags; match=arith.addi must name ops on floats

// UNKNOWN: set-fastmath-flags: flags has no flag 'nnnan'; flags are reassoc, nnan, ninf, nsz, arcp, contract, afn; did you mean 'nnan'?

// NOTHING: set-fastmath-flags: no op fits match=addd; it is a glob on names such as arith.addf

// CLEAR: clear-fastmath-flags: flags has no flag 'contact'; flags are reassoc, nnan, ninf, nsz, arcp, contract, afn; did you mean 'contract'?
