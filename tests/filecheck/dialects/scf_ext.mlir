// RUN: halfulp-opt %s | filecheck %s
// RUN: halfulp-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

func.func @f(%status: memref<?xi64>, %rounds: index, %threads: index) {
  %c8 = arith.constant 8 : index
  scf_ext.forall %rounds threads %threads {
  ^bb0(%round: index):
    scf_ext.critical %status[%c8] : memref<?xi64> {
      scf_ext.yield
    }
    scf_ext.yield
  }
  %address = memref.load %status[%c8] : memref<?xi64>
  scf_ext.call_address %address(%address, %address)
  func.return
}

// CHECK:        scf_ext.forall %rounds threads %threads {
// CHECK-NEXT:   ^bb{{.*}}(%round: index):
// CHECK-NEXT:     scf_ext.critical %status[%c8] : memref<?xi64> {
// CHECK-NEXT:       scf_ext.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     scf_ext.yield
// CHECK-NEXT:   }
// CHECK:        scf_ext.call_address %address(%address, %address)

// GENERIC:      "scf_ext.forall"(%rounds, %threads) ({
// GENERIC:        "scf_ext.critical"(%status, %c8) ({
