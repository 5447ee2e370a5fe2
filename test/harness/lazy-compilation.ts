/** Settings of the runtime: code is optimized five times later, and WebAssembly never. They change no result. */
export const lazyCompilation = {
  BUN_JSC_thresholdForOptimizeAfterWarmUp: '5000',
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: '5000',
  BUN_JSC_thresholdForOptimizeSoon: '5000',
  BUN_JSC_useOMGJIT: '0',
} as const
