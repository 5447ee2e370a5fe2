import { effect, signal } from '@preact/signals'

export const themes = ['system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const storageKey = 'gateway-ai.theme'

export const theme = signal<Theme>(themes.find(known => known === localStorage.getItem(storageKey)) ?? 'system')

/** Applies the chosen theme to the page. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value
    if (theme.value === 'system') localStorage.removeItem(storageKey)
    else localStorage.setItem(storageKey, theme.value)
  })
}
