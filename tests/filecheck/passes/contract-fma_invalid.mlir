// RUN: halfulp-opt %s -p 'contract-fma{mode=off}' --verify-diagnostics | filecheck %s --check-prefix=OFF
// RUN: halfulp-opt %s -p 'contract-fma{mode=off strategy=llvm}' --verify-diagnostics | filecheck %s --check-prefix=OFF
// RUN: halfulp-opt %s -p 'contract-fma{mode=always}' --verify-diagnostics | filecheck %s --check-prefix=MODE
// RUN: halfulp-opt %s -p 'contract-fma{strategy=both}' --verify-diagnostics | filecheck %s --check-prefix=STRATEGY
// RUN: halfulp-opt %s -p 'contract-fma{defaults=contracts}' --verify-diagnostics | filecheck %s --check-prefix=DEFAULTS

graph.graph @g(%x: !graph.tensor<[n], f32, cpu>) {
  %0 = graph.apply "mul"(%x, %x) fastmath<nsz> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu>
  %1 = graph.apply "add"(%0, %x) fastmath<nsz, contract> : (!graph.tensor<[n], f32, cpu>, !graph.tensor<[n], f32, cpu>) -> !graph.tensor<[n], f32, cpu> loc("model.py":7:0)
  graph.output %1 : !graph.tensor<[n], f32, cpu>
}

// OFF:      graph.apply "add": it has the fastmath flag 'contract', but fp_contract='off' forbids every contraction; leave the flag out of the op or of its region, or compile with fp_contract='on'
// OFF-NEXT: at model.py:7

// MODE: contract-fma: mode must be one of 'off', 'on', 'fast', not 'always'

// STRATEGY: contract-fma: strategy must be one of 'explicit', 'llvm', not 'both'

// DEFAULTS: contract-fma: defaults has no flag 'contracts'; flags are reassoc, nnan, ninf, nsz, arcp, contract, afn; did you mean 'contract'?
