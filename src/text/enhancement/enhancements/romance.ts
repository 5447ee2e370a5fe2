import type { TypeWords } from './language.ts'

export const romance = {
  es: {
    labels: {
      audience: 'Público',
      format: 'Formato',
      scope: 'Alcance',
      constraints: 'Restricciones',
      steps: 'Pasos',
      check: 'Comprobación',
    },
    lines: {
      code: {
        format: 'código ejecutable con comentarios breves y su uso.',
        constraints: 'sin dependencias innecesarias; controla los errores.',
      },
      code_algorithm: {
        format: 'la idea en breve y después el código.',
        constraints: 'indica la complejidad en tiempo y espacio.',
        check: 'sigue un ejemplo pequeño.',
      },
      debugging: {
        steps: 'causa probable y después el arreglo más pequeño.',
        format: 'el código corregido.',
        check: 'cómo confirmar que funciona.',
      },
      analysis: {
        scope: 'los factores principales y lo que los contradice.',
        format: 'secciones cortas con una conclusión.',
      },
      writing: {
        audience: 'adapta el texto a su lector.',
        format: 'un texto completo, listo para usar.',
        constraints: 'claro y conciso.',
      },
      math: {
        steps: 'muestra cada paso y la regla que usa.',
        format: 'el resultado final en su propia línea.',
        check: 'verifica el resultado.',
      },
      creative: {
        format: 'una pieza acabada, con principio y final.',
        constraints: 'detalles vivos y concretos; un tono coherente.',
      },
      planning: {
        steps: 'en orden, cada uno con su objetivo.',
        scope: 'indica los supuestos de tiempo y medios.',
        check: 'nombra los riesgos.',
      },
      comparison: {
        format: 'una tabla y una breve recomendación.',
        scope: 'los criterios que importan para decidir.',
      },
    },
  },
  fr: {
    labels: {
      audience: 'Public',
      format: 'Format',
      scope: 'Périmètre',
      constraints: 'Contraintes',
      steps: 'Étapes',
      check: 'Vérification',
    },
    lines: {
      code: {
        format: 'du code exécutable, commenté brièvement, puis son emploi.',
        constraints: 'pas de dépendance inutile ; gère les erreurs.',
      },
      code_algorithm: {
        format: 'l’idée en bref, puis le code.',
        constraints: 'indique la complexité en temps et en mémoire.',
        check: 'déroule un petit exemple.',
      },
      debugging: {
        steps: 'la cause probable, puis la plus petite correction.',
        format: 'le code corrigé.',
        check: 'comment confirmer que cela marche.',
      },
      analysis: {
        scope: 'les facteurs principaux et ce qui s’y oppose.',
        format: 'de courtes sections et une conclusion.',
      },
      writing: {
        audience: 'adapte le texte à son lecteur.',
        format: 'un texte complet, prêt à l’emploi.',
        constraints: 'clair et concis.',
      },
      math: {
        steps: 'montre chaque étape et la règle utilisée.',
        format: 'le résultat final sur sa propre ligne.',
        check: 'vérifie le résultat.',
      },
      creative: {
        format: 'une œuvre achevée, avec un début et une fin.',
        constraints: 'des détails vivants et concrets ; un ton constant.',
      },
      planning: {
        steps: 'dans l’ordre, chacune avec son but.',
        scope: 'indique les hypothèses de temps et de moyens.',
        check: 'nomme les risques.',
      },
      comparison: {
        format: 'un tableau, puis une brève recommandation.',
        scope: 'les critères qui comptent pour décider.',
      },
    },
  },
  pt: {
    labels: {
      audience: 'Público',
      format: 'Formato',
      scope: 'Âmbito',
      constraints: 'Restrições',
      steps: 'Passos',
      check: 'Verificação',
    },
    lines: {
      code: {
        format: 'código executável com comentários breves e o seu uso.',
        constraints: 'sem dependências desnecessárias; trate os erros.',
      },
      code_algorithm: {
        format: 'a ideia em resumo e depois o código.',
        constraints: 'indique a complexidade de tempo e de espaço.',
        check: 'siga um exemplo pequeno.',
      },
      debugging: {
        steps: 'a causa provável e depois a menor correção.',
        format: 'o código corrigido.',
        check: 'como confirmar que funciona.',
      },
      analysis: {
        scope: 'os fatores principais e o que os contradiz.',
        format: 'seções curtas com uma conclusão.',
      },
      writing: {
        audience: 'adapte o texto ao leitor.',
        format: 'um texto completo, pronto para usar.',
        constraints: 'claro e conciso.',
      },
      math: {
        steps: 'mostre cada passo e a regra usada.',
        format: 'o resultado final em linha própria.',
        check: 'verifique o resultado.',
      },
      creative: {
        format: 'uma peça acabada, com início e fim.',
        constraints: 'detalhes vivos e concretos; um tom coerente.',
      },
      planning: {
        steps: 'em ordem, cada um com o seu objetivo.',
        scope: 'indique as suposições de tempo e de meios.',
        check: 'aponte os riscos.',
      },
      comparison: {
        format: 'uma tabela e uma breve recomendação.',
        scope: 'os critérios que importam para decidir.',
      },
    },
  },
  it: {
    labels: {
      audience: 'Destinatari',
      format: 'Formato',
      scope: 'Ambito',
      constraints: 'Vincoli',
      steps: 'Passaggi',
      check: 'Verifica',
    },
    lines: {
      code: {
        format: 'codice eseguibile con brevi commenti e il suo uso.',
        constraints: 'nessuna dipendenza inutile; gestisci gli errori.',
      },
      code_algorithm: {
        format: 'l’idea in breve, poi il codice.',
        constraints: 'indica la complessità in tempo e spazio.',
        check: 'segui un piccolo esempio.',
      },
      debugging: {
        steps: 'la causa probabile, poi la correzione più piccola.',
        format: 'il codice corretto.',
        check: 'come confermare che funziona.',
      },
      analysis: {
        scope: 'i fattori principali e ciò che li contraddice.',
        format: 'brevi sezioni con una conclusione.',
      },
      writing: {
        audience: 'adatta il testo al lettore.',
        format: 'un testo completo, pronto all’uso.',
        constraints: 'chiaro e conciso.',
      },
      math: {
        steps: 'mostra ogni passaggio e la regola usata.',
        format: 'il risultato finale su una riga propria.',
        check: 'verifica il risultato.',
      },
      creative: {
        format: 'un’opera compiuta, con un inizio e una fine.',
        constraints: 'dettagli vivi e concreti; un tono coerente.',
      },
      planning: {
        steps: 'in ordine, ciascuno con il suo scopo.',
        scope: 'indica le ipotesi su tempo e mezzi.',
        check: 'nomina i rischi.',
      },
      comparison: {
        format: 'una tabella, poi una breve raccomandazione.',
        scope: 'i criteri che contano per decidere.',
      },
    },
  },
} as const satisfies Readonly<Record<string, TypeWords>>
