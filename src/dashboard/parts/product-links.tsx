import { useGateway } from '../state/gateway.ts'

/** Links to the API reference and the status of the gateway, and its version. */
export function ProductLinks() {
  const version = useGateway()?.version
  return (
    <p class="product-links quiet">
      <a href="/docs">Docs</a>
      <a href="/readyz" target="_blank" rel="noopener">
        Status
      </a>
      {version !== undefined && <span>v{version}</span>}
    </p>
  )
}
