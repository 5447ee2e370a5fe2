/** An analysis in a thread of its own: prompts are read one after another, and there are more cores than one. */
import { readConfig } from '../config.ts'
import { type Analysed, openAnalysis } from './analysis.ts'

declare const self: Worker

export type AnalysisOrder = { readonly id: number; readonly lines: string }
export type AnalysisReport = { readonly id: number; readonly told: Analysed }

const analysis = openAnalysis(readConfig())

self.onmessage = async (event: MessageEvent<AnalysisOrder>) => {
  const { id, lines } = event.data
  self.postMessage({ id, told: (await analysis).of(lines) } satisfies AnalysisReport)
}
