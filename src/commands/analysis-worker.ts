/** An analysis in a separate thread, since prompts are independent and there are several cores. */
import { readConfig } from '../config/config.ts'
import { type AnalysisResult, openAnalysis } from './analysis.ts'

declare const self: Worker

export type AnalysisJob = { readonly id: number; readonly lines: string }
/** First `ready`, then the result of each batch. */
export type AnalysisReport = 'ready' | { readonly id: number; readonly told: AnalysisResult }

const analysis = await openAnalysis(readConfig())

self.onmessage = (event: MessageEvent<AnalysisJob>) => {
  const { id, lines } = event.data
  self.postMessage({ id, told: analysis.of(lines) } satisfies AnalysisReport)
}

self.postMessage('ready' satisfies AnalysisReport)
