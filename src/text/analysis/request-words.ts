/**
 * Typical words of very short requests by language: `meal plan`, `lettre de motivation`. A word that several languages
 * share is listed in each of them or in none.
 */
export const requestWords: Readonly<Record<string, string>> = {
  en: `explained meaning definition definitions describe define tell invent imagine draft compose proofread edit rewrite
    rephrase shorten polish paraphrase discuss analyze analyse evaluate critique review solve prove integrate differentiate
    simplify implement refactor rename remove reverse sort read undo merge fetch scrape scraper parse crashes crash crashing
    crashed fails failed failing keeps broken won working stuck center recursion tldr layoffs freezes loading missing slow
    difference differences similarities pros cons advantages disadvantages rent buy cheaper phones laptops better worse
    poems haiku limerick joke jokes riddle villain tales ghost essay emails invitation speech resignation resume apology
    complaint wedding farewell thanks office landlord boss nurse teacher press release statement recommendation meal workout
    schedule itinerary roadmap checklist weekly daily monthly lesson lessons study vegetable garden retirement vacation
    causes effects impact consequences history themes analysis summary summarize summarise productivity growth market
    research survey equation square root primes interest compound proof theorem derivative trapezoid circle tree search
    sorting duplicates duplicate list lists hashmap folder folders query queries password calculator game weather fix
    example examples snippet spreadsheet formula formulas height width button scraping number numbers bullet points headline
    headlines slogans names idea ideas tips beginner beginners advanced exam exams homework healthy breakfast dinner lunch
    recipes chicken soup cake bread cookies kids dog dogs cat cats birds horses tea coffee water cheap laptop phone car cars
    bike house money savings loan mortgage tax taxes insurance investing retire weight loss sleep running swimming peace
    death love life autumn spring summer winter rain snow ocean night moon stars sad funny short quick easy work remote law
    ethics climate change warming nuclear energy wind oil housing poverty education healthcare freedom strangers lullaby
    campfire spooky superhero origin time origins rhyme rhymes verse graduation shower sick leave weeks launch announcement
    reference student students forms last revert countdown timer reader writer count frames longest shortest largest
    smallest fastest cheapest reading maths physics chemistry biology geography psychology philosophy economics medicine
    nursing customer customers hiring answers offboarding moving packing cleaning gardening cooking baking knitting painting
    drawing singing dancing driving parenting toddler toddlers teen teens adults seniors elderly couple couples husband wife
    mother father sister brother grandma grandpa son daughter girlfriend boyfriend neighbor neighbour employee employees
    coworker investor investors lawyer doctor engineer baker farmer artist queen princess knight wizard witch alien aliens
    vampire zombie mermaid unicorn forest island mountain mountains beach river kitchen bedroom window door chair shirt
    shoes gifts present cards vows apologies regret reminder request proposal summaries reviews outline drafts chapter
    chapters sentences grammar spelling vocabulary words synonyms write writing letters speeches stories songs games steps
    rules reasons facts myths benefits risks costs prices wages salary raise unemployment debt banks stocks bonds trade
    tariffs elections voting abortion euthanasia punishment slavery kings wars battle victory defeat treaty pollution
    plastic waste recycling deforestation drought floods wildfires earthquakes volcanoes planets rockets satellites genes
    viruses brain heart blood bones lungs stomach skin eyes teeth fever cough pain headache anxiety nodes linked stacks
    queues locks leak leaks deadlock deadlocks keyboard screen mouse speaker speakers headphones camera cameras charger
    charging downloads uninstall delete paste save open close convert compress resize crop blur columns row rows chart
    charts graph graphs label labels lookup average mean median deviation percentage slope length speed mass heat roots
    multiples divisors decimal decimals inequality inequalities polynomial polynomials logarithm logarithms integrals
    derivatives vectors proofs black holes dark matter vaccines works does magnets gravity teach learn queens knapsack fault
    segmentation candles traveling journey essays habits goals skills leadership teamwork happiness friendship loneliness
    kindness courage mystery opening christmas carol halloween easter thanksgiving rejection send sends function functions
    compile compiles deprivation day days hour hours advert advertisement flyer tagline caption captions hashtag hashtags
    screenplay novels tragedy ballad sonnet ode elegy acrostic nursery bedtime grade first second third fourth fifth year
    years old new good bad big small long large tiny huge red blue green white picture pictures sound music guitar drums
    violin chess soccer basketball baseball skating skiing climbing cycling walking stretching posture skincare makeup hair
    nails fashion clothes wardrobe budgeting saving spending grocery groceries shopping pantry dessert snack snacks
    vegetarian dairy rice beef pork beans eggs cheese potato tomato onion garlic oven roof floor wall walls paint plumbing
    wiring furniture lawn flowers roses trees seeds soil pets puppy kitten hamster airport flight flights trains road trips
    backpacking luggage passport honeymoon anniversary reunion barbecue fundraiser fundraising charity volunteer volunteers
    school college university classroom syllabus curriculum worksheet rubric teaching teachers pupils standup retrospective
    stakeholder stakeholders vendor supplier privacy terms refund returns shipping delivery invoice invoices receipt
    receipts complaints warranty subscription pricing strategies planner tracker spread calendar deadline deadlines goal
    milestones kickoff runway churn retention acquisition funnel hypothesis experiment methodology findings bibliography
    peer friction momentum velocity acceleration torque voltage resistance circuits magnetism optics waves thermodynamics
    atoms molecules acids bases reactions enzymes proteins ecosystem ecosystems supply demand subsidies taxation welfare
    immigration capitalism socialism communism feminism colonialism nationalism democracy dictatorship parliament senate
    court prison guns drugs alcohol smoking loops reversed palindrome anagram factorial permutations traversal paths binary
    trie`,
  de: `schreib schreiben verfasse verfassen formuliere formulieren gedicht gedichte geschichte kurzgeschichte märchen witz
    witze brief bewerbung kündigung lebenslauf einladung rede anschreiben dankesbrief entschuldigung erkläre erklär erklären
    erklärung beschreibe übersetze übersetzen übersetzung zusammenfassen zusammenfassung fasse analysiere analyse vergleiche
    vergleich unterschied unterschiede oder hund katze berechne berechnen löse lösen gleichung ableitung beweise reiseplan
    trainingsplan lernplan speiseplan wochenplan essensplan urlaub planen plane reise hochzeit geburtstag ideen tipps
    vorschläge erstelle erstellen programmieren sortieren umbenennen datei dateien liste lesen umkehren fehler funktioniert
    startet stürzt beheben ursachen folgen auswirkungen korrigiere korrigieren verbessere kürze rezept rezepte kochen
    gliederung aufsatz zeugnis vorstellungsgespräch steuererklärung haushaltsplan businessplan redewendung sprüche spruch`,
  fr: `écris écrire rédige rédiger poème poèmes conte histoire blague chanson lettre motivation démission discours courriel
    invitation mariage explique expliquer décris décrire traduis traduire traduction résume résumer résumé analyse analyser
    compare comparer comparaison différence différences avantages inconvénients chien calcule calculer résous résoudre
    équation dérivée démontre voyage entraînement itinéraire semaine vacances repas anniversaire idées conseils crée créer
    trier liste lire fichier mail article cours études thé enfants renommer erreur marche corrige corriger améliore
    améliorer reformule causes conséquences effets recette recettes dissertation exposé emploi temps acheter louer`,
  es: `escribe escribir redacta redactar poema poemas cuento historia chiste canción carta renuncia presentación discurso
    correo invitación boda explica explicar describe traduce traducir traducción resume resumir resumen texto analiza
    analizar análisis compara comparar comparación diferencia diferencias ventajas desventajas perro perros gato gatos
    calcula calcular resuelve resolver ecuación derivada demuestra viaje entrenamiento itinerario semana vacaciones menú
    semanal cumpleaños ideas consejos crea crear ordenar lista leer archivo código estudio té carro coche cuentos escrito
    renombrar funciona corrige corregir mejora mejorar reescribe causas consecuencias efectos receta recetas ensayo comprar
    alquilar hola`,
  pt: `escreva escrever redija poema poemas conto história piada canção carta demissão apresentação discurso convite casamento
    explica explique explicar descreva traduza traduzir tradução resuma resumir resumo texto analise analisar análise
    compara compare comparar comparação diferença diferenças vantagens desvantagens cachorro gato calcule calcular resolva
    resolver equação derivada viagem treino roteiro semana férias refeições aniversário ideias dicas crie criar ordenar
    lista ler arquivo renomear erro funciona corrija corrigir melhore melhorar reescreva causas consequências efeitos
    receita receitas redação comprar alugar fotossíntese estudos olá`,
  it: `scrivi scrivere poesia poesie storia racconto barzelletta canzone lettera dimissioni presentazione discorso invito
    matrimonio spiega spiegare descrivi traduci tradurre traduzione riassumi riassumere riassunto testo analizza analizzare
    analisi confronta confrontare confronto differenza differenze vantaggi svantaggi cane gatto calcola calcolare risolvi
    risolvere equazione derivata dimostra viaggio allenamento itinerario settimana vacanze compleanno idee consigli crea
    creare ordinare lista leggere rinominare errore funziona correggi correggere migliora migliorare riscrivi cause
    conseguenze effetti ricetta ricette saggio comprare affittare alimentare`,
  nl: `schrijf schrijven gedicht gedichten verhaal grap liedje brief motivatiebrief ontslagbrief toespraak uitnodiging bruiloft
    leg uitleggen beschrijf vertaal vertalen vertaling samenvatten samenvatting analyseer analyse vergelijk vergelijken
    vergelijking verschil verschillen voordelen nadelen hond kat bereken los afgeleide bewijs reisplan reis trainingsschema
    schema vakantie verjaardag ideeën tips maak maken thee koffie kind sorteren lijst lezen bestand hernoemen fout werkt
    verbeter verbeteren herschrijf oorzaken gevolgen effecten recept recepten opstel kopen huren sollicitatiebrief`,
  sv: 'skriv dikt berättelse brev förklara beskriv översätt sammanfatta analysera jämför skillnad eller hund katt beräkna lös resa skapa',
  da: 'skriv digt historie brev forklar beskriv oversæt sammenfat analyser sammenlign forskel eller hund kat beregn løs rejse lav',
  no: 'skriv dikt historie brev forklar beskriv oversett sammendrag analyser sammenlign forskjell eller hund katt beregn løs reise lag',
  fi: 'kirjoita runo tarina kirje selitä kuvaile käännä tiivistä analysoi vertaa ero tai koira kissa laske ratkaise suunnitelma matka luo',
  pl: `napisz napisać wiersz wiersze opowiadanie bajka bajkę żart piosenka piosenkę list motywacyjny wypowiedzenie umowy
    podanie przemówienie zaproszenie wesele wyjaśnij objaśnij opisz przetłumacz tłumaczenie streść streszczenie podsumuj
    przeanalizuj analiza porównaj porównanie różnica różnice wady zalety pies kot oblicz rozwiąż równanie pochodna udowodnij
    treningowy podróży podróż wakacje urodziny pomysły porady stwórz posortuj posortować lista listę odczytać plik błąd
    działa popraw poprawić przyczyny skutki przepis przepisy rozprawka kupno wynajem cześć tekst`,
  cs: 'napiš báseň příběh dopis vysvětli popiš přelož shrň analyzuj porovnej rozdíl nebo pes kočka vypočítej vyřeš plán cesta vytvoř',
  ro: 'scrie poezie poveste scrisoare explică descrie tradu rezumă analizează compară diferența sau câine pisică calculează rezolvă călătorie',
  hu: 'írj vers történet levél magyarázd írd fordítsd foglald elemezd hasonlítsd különbség vagy kutya macska számold oldd terv utazás',
  tr: `yaz yazın şiir hikaye mektup dilekçe özgeçmiş fıkra şarkı açıkla anlat çevir özetle özet analiz karşılaştır
    karşılaştırma fark farkı farklar köpek kedi hesapla çöz denklem planı gezi eğitim çalışma programı tatil fikirler
    öneriler oluştur sıralama sırala liste dosya okuma hata çalışmıyor düzelt nedenleri sonuçları tarif tarifi istifa`,
  id: 'tulis puisi cerita surat jelaskan terjemahkan ringkas analisis bandingkan perbedaan rencana buatkan hitung selesaikan kucing anjing',
  vi: 'viết thơ chuyện thư giải thích dịch tóm tắt phân tích so sánh kế hoạch tính',
}

/** Words that many languages borrowed from English: English among English words, no evidence among others. */
export const borrowedWords = `c dockerfile dijkstra fibonacci quicksort mergesort dfs bfs dns cpu gpu ssd usb vpn regex cors oauth jwt crud orm sdk ide
  cli gui golang onboarding versus dialogue import commit marketing data class client monster stress upload download router
  update filter form page app apps api todo web website server script code email blog post quiz training marathon budget
  plan job jobs test tests demo design startup business project team workshop yoga fitness smartphone tablet chat bot spam
  login logo slogan podcast newsletter cover band song rap sketch story film movie fantasy robot hotel camping hobby party
  baby smoothie burger pizza sushi debug cache token cloud container pixel layout template plugin framework frontend backend
  cookie git github docker kubernetes linux ubuntu windows macos android ios iphone python java javascript typescript rust
  go php ruby swift kotlin scala bash powershell sql mysql postgres postgresql mongodb sqlite redis css html div json xml
  yaml csv pdf http https rest graphql react vue angular svelte django flask laravel express node nodejs npm webpack excel
  word powerpoint pandas numpy tensorflow pytorch unity unreal terraform nginx apache aws azure linkedin twitter instagram
  facebook youtube tesla google amazon netflix vs random plot hello world factor loop file error errors lyrics hero
  monologue tale dragon dragons robots pirates notes message description routine area volume prime inverse triangle
  fractions queue stack array arrays string strings files table tables database shop cart bug bugs tutorial sheet guide
  muscle solar crime toggle religion interview interviews questions pirate minutes paragraph paragraphs revolution empire
  empires cells bacteria depression pointers memory shell command commands prompt cell limits matrices grid sum contact
  validation backup bio studio meeting mac integral integer solution group sine sin cos tan ln log sqrt x y z n k product
  object method module variable thread process proxy host port socket stream buffer sync async await promise closure lambda
  decorator generator iterator enum interface struct trait macro middleware endpoint webhook julia perl haskell lua elixir
  clojure erlang fortran cobol zig dart assembly latex markdown macbook pc playstation xbox thesis methods copy ad ads
  banner catalog brochure profile portfolio novel fiction thriller romance comedy sentence comments comment threads link
  links image images photo photos tennis golf boxing core vegan keto gluten pasta fish grill compost train bus visa
  picnic church parents sprint retro backlog contract contracts lease agreement policy conditions strategy vision mission
  values culture pitch seed citation citations abstract journal current entropy periodic photosynthesis respiration
  evolution inflation recession monopoly constitution congress supreme justice police combinations matrix vector path hash
  heap`
