/** An analysis in a thread of its own: prompts are read one after another, and there are more cores than one. */
import { readConfig } from '../config.ts'
import { type AnalysisResult, openAnalysis } from './analysis.ts'

declare const self: Worker

export type AnalysisJob = { readonly id: number; readonly lines: string }
/** First that it is ready, then what was told of each order. */
export type AnalysisReport = 'ready' | { readonly id: number; readonly told: AnalysisResult }

const analysis = await openAnalysis(readConfig())

self.onmessage = (event: MessageEvent<AnalysisJob>) => {
  const { id, lines } = event.data
  self.postMessage({ id, told: analysis.of(lines) } satisfies AnalysisReport)
}

self.postMessage('ready' satisfies AnalysisReport)
