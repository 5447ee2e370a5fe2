import { useGateway } from '../state/gateway.ts'
import { hrefTo } from '../state/href.ts'

/** Links to the API reference and the status of the gateway, and its version. */
export function ProductLinks() {
  const version = useGateway()?.version
  return (
    <p class="product-links quiet">
      <a href="/docs">Docs</a>
      <a href={hrefTo('status')}>Status</a>
      {version !== undefined && <span>v{version}</span>}
    </p>
  )
}
