import type { TypeWords } from './language.ts'

export const slavic = {
  ru: {
    labels: {
      audience: 'Читатель',
      format: 'Формат',
      scope: 'Охват',
      constraints: 'Условия',
      steps: 'Шаги',
      check: 'Проверка',
    },
    lines: {
      code: {
        format: 'рабочий код с краткими пояснениями и примером.',
        constraints: 'без лишних зависимостей; обработай ошибки.',
      },
      code_algorithm: {
        format: 'кратко идея, затем код.',
        constraints: 'укажи сложность по времени и памяти.',
        check: 'разбери небольшой пример.',
      },
      debugging: {
        steps: 'вероятная причина, затем самое малое исправление.',
        format: 'исправленный код.',
        check: 'как убедиться, что всё работает.',
      },
      analysis: {
        scope: 'главные причины и то, что им противоречит.',
        format: 'короткие разделы и вывод.',
      },
      writing: {
        audience: 'тон под читателя.',
        format: 'законченный текст, готовый к использованию.',
        constraints: 'ясно и кратко.',
      },
      math: {
        steps: 'покажи каждый шаг и правило.',
        format: 'ответ отдельной строкой.',
        check: 'проверь результат.',
      },
      creative: {
        format: 'законченное произведение с началом и концом.',
        constraints: 'живые подробности; единый тон.',
      },
      planning: {
        steps: 'по порядку, у каждого своя цель.',
        scope: 'укажи допущения о времени и средствах.',
        check: 'назови риски.',
      },
      comparison: {
        format: 'таблица, затем краткая рекомендация.',
        scope: 'признаки, важные для выбора.',
      },
    },
  },
  uk: {
    labels: {
      audience: 'Читач',
      format: 'Формат',
      scope: 'Обсяг',
      constraints: 'Умови',
      steps: 'Кроки',
      check: 'Перевірка',
    },
    lines: {
      code: {
        format: 'робочий код із короткими поясненнями та прикладом.',
        constraints: 'без зайвих залежностей; оброби помилки.',
      },
      code_algorithm: {
        format: 'коротко ідея, потім код.',
        constraints: 'вкажи складність за часом і пам’яттю.',
        check: 'розбери невеликий приклад.',
      },
      debugging: {
        steps: 'імовірна причина, потім найменше виправлення.',
        format: 'виправлений код.',
        check: 'як переконатися, що все працює.',
      },
      analysis: {
        scope: 'головні чинники й те, що їм суперечить.',
        format: 'короткі розділи та висновок.',
      },
      writing: {
        audience: 'тон відповідно до читача.',
        format: 'завершений текст, готовий до використання.',
        constraints: 'ясно й стисло.',
      },
      math: {
        steps: 'покажи кожен крок і правило.',
        format: 'відповідь окремим рядком.',
        check: 'перевір результат.',
      },
      creative: {
        format: 'завершений твір із початком і кінцем.',
        constraints: 'живі, конкретні подробиці; єдиний тон.',
      },
      planning: {
        steps: 'по порядку, у кожного своя мета.',
        scope: 'вкажи припущення щодо часу й засобів.',
        check: 'назви ризики.',
      },
      comparison: {
        format: 'таблиця, потім коротка рекомендація.',
        scope: 'критерії, важливі для вибору.',
      },
    },
  },
  pl: {
    labels: {
      audience: 'Odbiorca',
      format: 'Forma',
      scope: 'Zakres',
      constraints: 'Warunki',
      steps: 'Kroki',
      check: 'Sprawdzenie',
    },
    lines: {
      code: {
        format: 'działający kod z krótkimi komentarzami i przykładem użycia.',
        constraints: 'bez zbędnych zależności; obsłuż błędy.',
      },
      code_algorithm: {
        format: 'krótko pomysł, potem kod.',
        constraints: 'podaj złożoność czasową i pamięciową.',
        check: 'prześledź mały przykład.',
      },
      debugging: {
        steps: 'prawdopodobna przyczyna, potem najmniejsza poprawka.',
        format: 'poprawiony kod.',
        check: 'jak upewnić się, że działa.',
      },
      analysis: {
        scope: 'najważniejsze czynniki i to, co im przeczy.',
        format: 'krótkie części i wniosek.',
      },
      writing: {
        audience: 'ton dopasowany do czytelnika.',
        format: 'pełny tekst, gotowy do użycia.',
        constraints: 'jasno i zwięźle.',
      },
      math: {
        steps: 'pokaż każdy krok i użytą regułę.',
        format: 'wynik w osobnym wierszu.',
        check: 'sprawdź wynik.',
      },
      creative: {
        format: 'skończony utwór z początkiem i zakończeniem.',
        constraints: 'żywe, konkretne szczegóły; jednolity ton.',
      },
      planning: {
        steps: 'po kolei, każdy ze swoim celem.',
        scope: 'podaj założenia co do czasu i środków.',
        check: 'wymień ryzyka.',
      },
      comparison: {
        format: 'tabela, potem krótka rekomendacja.',
        scope: 'kryteria ważne przy wyborze.',
      },
    },
  },
} as const satisfies Readonly<Record<string, TypeWords>>
