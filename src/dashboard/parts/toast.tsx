import { signal } from '@preact/signals'

const said = signal('')
let timer: ReturnType<typeof setTimeout> | undefined

/** Shows a confirmation for some seconds. */
export function showToast(words: string): void {
  clearTimeout(timer)
  said.value = words
  timer = setTimeout(() => {
    said.value = ''
  }, 6_000)
}

/** Container of confirmations, which screen readers announce. */
export function Toast() {
  return (
    <div class="said" role="status">
      {said.value !== '' && <p>{said.value}</p>}
    </div>
  )
}
