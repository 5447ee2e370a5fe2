import { signal } from '@preact/signals'

const said = signal('')
let timer: ReturnType<typeof setTimeout> | undefined

/** Says that something was done, for a few seconds. */
export function showToast(words: string): void {
  clearTimeout(timer)
  said.value = words
  timer = setTimeout(() => {
    said.value = ''
  }, 6_000)
}

/** Where it is said, also to screen readers. */
export function Toast() {
  return (
    <div class="said" role="status">
      {said.value !== '' && <p>{said.value}</p>}
    </div>
  )
}
