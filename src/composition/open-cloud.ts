/** Opens a provider on a cloud: its adapter, and the authorizer of its requests. */
import type { CloudCredentials, CloudSettings, CloudType } from '../config/clouds.ts'
import { awsAuthorizer } from '../credentials/aws.ts'
import { entraAuthorizer, serviceAccountAuthorizer } from '../credentials/bearer.ts'
import type { CredentialDeps } from '../credentials/token-request.ts'
import { azure, azureEmbeddings } from '../providers/azure.ts'
import { bedrock } from '../providers/bedrock.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import type { Authorizer } from '../providers/provider.ts'
import { vertex } from '../providers/vertex.ts'

type Adapters = Pick<ConfiguredProvider, 'provider' | 'embeddings'>

/** Returns the adapters of a cloud. */
export function cloudAdapters(type: CloudType, { apiVersion }: CloudSettings): Adapters {
  switch (type) {
    case 'azure':
      return { provider: azure({ apiVersion }), embeddings: azureEmbeddings({ apiVersion }) }
    case 'bedrock':
      return { provider: bedrock }
    case 'vertex':
      return { provider: vertex }
  }
}

/** Creates the authorizer of a provider. */
export function openAuthorizer(deps: CredentialDeps, credentials: CloudCredentials): Authorizer {
  switch (credentials.kind) {
    case 'entra':
      return entraAuthorizer(deps, credentials.entra)
    case 'aws':
      return awsAuthorizer(deps, credentials.aws, { region: credentials.region, service: 'bedrock' })
    case 'service_account':
      return serviceAccountAuthorizer(deps, credentials.account)
  }
}
