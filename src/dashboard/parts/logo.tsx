export function Logo() {
  return (
    <svg class="mark" width="26" height="26" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" />
      <path d="M8 16h6m0 0 5-6h5m-10 6 5 6h5" />
    </svg>
  )
}
