/** Repeats `work` while the tab is visible, and at once when it becomes visible. Returns what stops it. */
export function whileVisible(everyMs: number, work: () => void): () => void {
  const workIfVisible = () => {
    if (document.visibilityState === 'visible') work()
  }
  const timer = setInterval(workIfVisible, everyMs)
  document.addEventListener('visibilitychange', workIfVisible)
  return () => {
    clearInterval(timer)
    document.removeEventListener('visibilitychange', workIfVisible)
  }
}
