import { render } from 'preact'
import { App } from './app.tsx'
import { followTheme } from './state/theme.ts'

const root = document.getElementById('app')
if (root !== null) {
  followTheme()
  render(<App />, root)
}
