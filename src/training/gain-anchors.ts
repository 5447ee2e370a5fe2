import file from './data/gain-anchors.json'

/** A training prompt with the expected gain of a strong model: 0 = none, 1 = large. */
export type Anchor = { readonly prompt: string; readonly gain: number }

/**
 * Returns prompts of everyday kinds that no labeled set has: polite phrases and small favors, which any model can do,
 * and work of many steps, where models differ. Judged by hand; they keep routing sensible for prompts other than exams.
 */
export function anchors(): Anchor[] {
  return [
    ...file.easy.map(prompt => ({ prompt, gain: 0 })),
    ...file.topics.flatMap((topic, index) => [
      { prompt: filled(file.easyForms, index, topic), gain: 0.1 },
      { prompt: filled(file.middleForms, index, topic), gain: 0.4 },
    ]),
    ...file.trades.flatMap((trade, index) => [
      { prompt: filled(file.hardForms, index, trade), gain: 0.9 },
      { prompt: filled(file.hardForms, index + 3, trade), gain: 0.9 },
    ]),
    ...file.hard.map(prompt => ({ prompt, gain: 1 })),
  ]
}

function filled(forms: readonly string[], index: number, what: string): string {
  return (forms[index % forms.length] ?? '').replace('…', what)
}
