import type { ComponentChildren } from 'preact'
import type { Tone } from './notice.tsx'

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>
}
