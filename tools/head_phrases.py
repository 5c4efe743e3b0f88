# SPDX-License-Identifier: Apache-2.0
"""Words and sentences of which tools/head_prompts.py makes prompts, written for it. The slots {name} {surname} {city} {country}
{thing} {topic} {job} ... are filled with words of LISTS, {n} {m} {k} {year} with numbers, {entity} with a name that the texts
mention, and {} with a text."""
LISTS = {
    "name": (
        "Anna Ben Carla David Elena Farid Grace Hiro Ines Jonas Kavya Liam Mona Nadia Oscar Paula Quinn Rosa Samir Tara "
        "Umar Vera Wendy Xavier Yara Zoe Marcus Priya Leo Fatima Sven Aisha"
    ).split(),
    "surname": (
        "Keller Okafor Lindgren Moreau Novak Haddad Tanaka Rossi Becker Silva Murphy Kowalski Schmidt Larsen Varga Dubois"
    ).split(),
    "city": (
        "Hamburg Lyon Porto Cracow Leipzig Toronto Nairobi Oslo Seville Dresden Chicago Osaka Bergen Ghent Basel Denver "
        "Lima Graz"
    ).split(),
    "country": (
        "Portugal Kenya Norway Peru Austria Canada Vietnam Poland Morocco Chile Ireland Jordan Iceland Ghana Belgium "
        "Mongolia Cuba Nepal Finland Uruguay Estonia Malaysia"
    ).split(),
    "thing": (
        "apples pencils books tickets marbles cookies stamps bottles chairs eggs flowers shirts cards oranges balloons "
        "bricks lamps notebooks candles shells"
    ).split(),
    "topic": [
        "solar power", "sleep", "chess", "the water cycle", "remote work", "bread baking", "earthquakes",
        "electric cars", "the stock market", "learning a language", "honeybees", "city planning", "the printing press",
        "vaccines", "jazz", "gardening on a balcony", "coral reefs", "the Roman army", "public libraries",
        "black holes", "climate change", "running a marathon", "social media", "the French Revolution",
        "machine learning", "coffee", "plate tectonics", "friendship", "inflation", "the human heart", "recycling",
        "photography", "gravity", "school uniforms", "impressionist painting", "railways", "migration of birds",
        "supply and demand", "the moon landing", "democracy", "stoic philosophy", "healthy breakfasts", "cybersecurity",
        "the Silk Road", "evolution", "time management", "wind", "volcanoes", "the theory of relativity", "poetry",
        "minimum wages", "antibiotics", "DNA", "the ancient Greek theatre", "travelling alone",
    ],
    "job": [
        "teacher", "nurse", "detective", "ship's captain", "travel guide", "chef", "museum curator", "lawyer",
        "gardener", "astronaut", "doctor", "pirate", "medieval king", "football coach", "history professor",
        "software engineer", "therapist", "radio host", "librarian",
    ],
    "form": [
        "short story", "blog post", "poem", "speech", "letter to the editor", "product description", "dialogue",
        "news report", "song", "essay", "list of tips", "tweet", "haiku", "book review", "cover letter",
        "scene for a play", "fable", "diary entry", "outline", "press release",
    ],
    "trait": (
        "friendly formal funny short persuasive neutral simple detailed poetic cheerful serious sceptical"
    ).split(),
    "sport": (
        "football basketball handball volleyball hockey cricket rugby baseball chess curling"
    ).split(),
    "element": (
        "gold iron helium copper neon sodium silver lead carbon zinc oxygen tin uranium mercury"
    ).split(),
    "organ": (
        "liver heart kidney spleen lung stomach pancreas brain thyroid skin bladder retina"
    ).split(),
    "planet": (
        "Mars Venus Jupiter Saturn Mercury Neptune Uranus"
    ).split(),
    "animal": (
        "horse lion crow wolf dolphin hedgehog whale fox penguin bat owl beaver tiger camel frog"
    ).split(),
    "work": [
        "War and Peace", "Hamlet", "Don Quixote", "Moby Dick", "The Odyssey", "Faust", "Jane Eyre", "Dracula",
        "Romeo and Juliet", "Macbeth", "Oliver Twist", "Frankenstein", "The Divine Comedy", "Robinson Crusoe",
        "Anna Karenina", "Treasure Island", "Pinocchio", "Carmen",
    ],
    "language": (
        "Python Python Python C JavaScript Java Rust Go C++ bash SQL TypeScript"
    ).split(),
    "task": [
        "counts the words of a file", "reverses a list", "checks whether a word is a palindrome",
        "prints the first {n} prime numbers", "removes duplicates and keeps the order",
        "reads a CSV file and sums column {k}", "finds the {k} largest numbers of a list",
        "converts Celsius to Fahrenheit", "is a queue with push and pop", "parses a date like 2024-05-{n}",
        "sorts people by age, then name", "draws a triangle of {n} lines of stars",
        "splits a text into lines of {n} characters", "computes the factorial of {k} without recursion",
        "merges two sorted lists", "counts from {n} down to {k}", "finds the longest common prefix of some words",
        "retries a request {k} times", "stores {thing} with a price", "validates an email address",
        "makes a password of {n} characters", "multiplies two matrices", "searches a sorted list in halves",
        "turns a nested list into a flat one", "rotates a picture of {n} by {m} pixels",
    ],
}

# Conversations: first turns, and turns that may follow any answer.
CHAT = [
    "Write a {trait} {form} about {topic}.", "Explain {topic} to a {job}.",
    "What are the advantages and disadvantages of {topic}?", "Give me {k} interesting facts about {topic}.",
    "How did {topic} change the world?", "I want to know more about {topic}. Where should I start?",
    "Compare {topic} with {topic}. What do they have in common?",
    "Pretend to be a {job} and tell me what you think about {topic}.",
    "You are a {job} from {city}. Introduce yourself, then answer: why does {topic} matter?",
    "Make a plan of {k} steps for someone who is new to {topic}.",
    "Draft a {trait} email to {name} {surname} to move our meeting about {topic} to Thursday.",
    "Write a {trait} letter to my landlord about the broken heating in flat {n}.",
    "Suggest {k} titles for a {form} about {topic}.", "What questions should I ask a {job} in an interview?",
    "Write a dialogue between a {job} and a {job} about {topic}.",
    "Is it true that {topic} is good for children? Give arguments for both sides.",
    "Describe a day in {city} as a {job} would.", "Plan a trip of {k} days to {country}.",
    "What would happen if there were no {thing} in the world?",
    "Give me a recipe with {thing} in it, or say why that is a bad idea.",
    "Tell me a story in which a {job} from {country} finds {n} {thing}.",
    "I am a {job} and I feel tired after work. What can I do?", "What is the difference between {topic} and {topic}?",
    "Why do people like {topic}?", "What does a {job} do all day?",
    "Write an introduction of a research paper on {topic}.",
    "Create a quiz of {k} questions about {topic}, with answers.",
    "Which causes and effects does {topic} have? Answer in a table.",
    "List {k} mistakes that beginners make with {topic}.", "Name {k} cities in {country} and one sight of each.",
    "{name} is taller than {name2}, and {name2} is taller than {name3}. Who is the shortest?",
    "A {job} says that all {thing} are round. {name} has one that is not. What follows from this?",
    "If yesterday had been a Tuesday, which day would it be in {n} days?",
    "How would you solve this: {n} people share {m} {thing}, and nobody wants to have fewer than {k}?",
    "Sort these words into animals, food and places: {city}, bread, horse, {country}, cheese, owl, soup.",
    "What are the main schools of thought on {topic}?", "Which physical laws explain {topic}?",
    "Describe the structure of an essay on {topic}.",
    "Give feedback on this sentence: \"{topic} is very good because it is good for a {job}.\"",
    "Invent a game with {n} {thing} for {k} players.",
]
FOLLOW = [
    "Make it shorter.", "Now say it in {k} bullet points.", "Can you give an example?",
    "Rewrite your answer in a more {trait} tone.", "Why?", "What could go wrong with that?",
    "Say the same without difficult words.", "Translate your answer into Spanish.", "Thanks! Anything else?",
    "Turn your answer into a {form}.", "Are you sure? Check your answer.", "Which of these points matters most?",
    "How would a {job} answer?", "Use short sentences only.", "Put that in a table.", "And what about {topic}?",
    "Summarize your answer in one sentence.", "Add the numbers, please.", "Write it as JSON.",
    "How do I get started today?", "Tell me more about the first one.",
]

# Answered in a sentence.
QUESTIONS = [
    "Who was {entity}?", "What is {entity} known for?", "Where is {entity}?", "When did {entity} begin?",
    "What is the meaning of {entity}?", "who is {entity}?", "what does {entity} mean?", "when was {entity} made?",
    "Who came before {entity}?", "How old is {entity}?", "What happened to {entity}?", "Who wrote about {entity}?",
    "Where does the name {entity} come from?", "What is the capital of {country}?",
    "what is the population of {country}?", "Which language is spoken in {country}?",
    "When did {country} become independent?", "What is the largest city in {country}?",
    "Which countries border {country}?", "Who is the head of state of {country}?",
    "What currency is used in {country}?", "what is {city} famous for?", "In which country is {city}?",
    "How far is {city} from {city}?", "Which river flows through {city}?", "who invented {topic}?",
    "When did {topic} start?", "Where did {topic} come from?", "Why is {topic} important?", "What is {topic}?",
    "what is another word for {topic}?", "How many players are on a team in {sport}?",
    "Who won the world championship in {sport} in {year}?", "where were the Olympic Games of {year} held?",
    "What happened in {year}?", "Who was the president of the United States in {year}?",
    "What is the chemical symbol of {element}?", "At what temperature does {element} melt?",
    "who discovered {element}?", "What is {element} used for?", "which part of the body is the {organ}?",
    "What does the {organ} do?", "how big is the {organ}?", "Which planet is closest to {planet}?",
    "How many moons does {planet} have?", "how long is a year on {planet}?", "Who plays the main part in {work}?",
    "who wrote {work}?", "When was {work} published?", "where does {work} take place?", "What is {work} about?",
    "how many chapters does {work} have?", "What do you call a group of {animal}s?", "How long does a {animal} live?",
    "what does a {animal} eat?", "Where do {animal}s sleep?",
]

# Answered with numbers.
SUMS = [
    "{name} has {n} {thing} and buys {m} more. Then {name} gives {k} of them to {name2}. How many {thing} does {name} have now?",
    "A box holds {k} {thing}. How many boxes are needed for {n} {thing}?",
    "{name} earns ${k} an hour and works {n} hours a week. How much is that in {m} weeks?",
    "A train drives {n} miles in {k} hours. How far does it get in {m} hours at the same speed?",
    "What is {n} + {m} * {k}?",
    "{name} reads {k} pages every day. The book has {n} pages, of which {m} are already read. After how many days is it finished?",
    "The price of {thing} rose from ${n} by {k} percent. What is the new price?", "Solve for x: {k}x + {n} = {m}.",
    "What is {k} percent of {n}?", "A rectangle is {n} cm long and {k} cm wide. What are its area and its perimeter?",
    "{name} is {k} years older than {name2}, who is {m}. In {n} years, how old will both be together?",
    "There are {n} {thing} in a shop. Half of them are sold on Monday, and {k} on Tuesday. How many are left?",
    "{name} bakes {n} {thing}, eats {k}, and packs the rest into bags of {m}. How many full bags are there?",
    "Compute ({n} - {k}) * ({m} + {k}).",
    "{name} buys {k} {thing} at ${m} each and pays with a ${n} note. How much change is there, or how much is missing?",
    "In a class of {n} children, {k} play chess, {m} play tennis, and 2 do both. How many do neither?",
    "Find the mean of {n}, {m}, {k} and {n}.",
    "{name} saves ${k} a week, and {name2} saves twice as much. How much do both have after {m} weeks?",
    "A tank holds {n} litres. Every minute {k} litres flow in and 1 litre flows out. When is it full?",
    "A bag has {k} red and {m} blue marbles. What is the probability of drawing a red one?",
    "{name} runs {k} km on Monday, twice as far on Wednesday, and {m} km on Saturday. How many km is that in a week, and in {n} weeks?",
    "If {k} workers need {n} hours for a wall, how long do {m} workers need?",
    "What is the remainder of {n} divided by {k}?", "Simplify {n}/{m}.",
    "Tickets cost ${n} for adults and ${k} for children. What does a family of two adults and {m} children pay?",
    "Find the slope between ({k}, {m}) and ({n}, {k}).",
    "{name} cuts a rope of {n} m into pieces of {k} m. How many pieces are there, and how much is left?",
    "Factor x^2 + {k}x - {m}.",
    "A farmer has {n} cows, {m} times as many hens, and {k} dogs. How many legs do all the animals have?",
    "What is the square of {k} plus {m}?",
    "{name} invests ${n} at {k} percent interest a year. How much is it after {m} years?",
    "How many seconds are {k} hours and {m} minutes?",
    "Of {n} {thing}, one quarter are red, {k} are green and the rest are blue. How many are blue?",
    "Write {n} in binary.", "Is {n} a prime number?",
    "{name} drinks {k} glasses of water a day, each of {m} ml. How many litres is that in {n} days?",
    "What is larger, {n}/{k} or {m}?",
]

# Sentences to be translated: an opening, a clause that may follow each of them, and how it goes on.
CLAUSES = {
    "German": (
        [
            "Am Montag ", "Nach Angaben der Polizei ", "Im vergangenen Jahr ", "Seit dem Sommer ", "Trotz des Regens ",
            "In {city} ", "Vor {n} Jahren ", "Heute Abend ", "Zum ersten Mal seit {n} Monaten ", "Nach langem Zögern ",
            "Wie erwartet ", "Überraschend ", "Während der Ferien ", "Anfang März ", "Nur selten ",
        ],
        [
            "hat {name} {surname} das neue Museum eröffnet",
            "protestierten rund {n} Menschen gegen die Pläne der Regierung", "gewann die Mannschaft mit {k} zu 1",
            "stieg der Preis für Strom um {k} Prozent", "wurde der Bahnhof wegen eines Brandes gesperrt",
            "verlor der Verein seinen besten Spieler", "spielten die Kinder im Garten hinter dem Haus",
            "suchte die Firma {n} neue Mitarbeiter", "kam es auf der Autobahn zu einem schweren Unfall",
            "kündigte der Minister ein neues Gesetz an", "stellten Forscher eine neue Art von Batterie vor",
            "fuhr {name} mit dem Fahrrad zur Arbeit", "lehnte das Gericht die Klage ab",
            "schlossen {n} Geschäfte in der Innenstadt", "fand das Konzert unter freiem Himmel statt",
            "traf sich der Rat zu einer geheimen Sitzung", "blieb die Zahl der Arbeitslosen gleich",
            "erzählte die Großmutter eine Geschichte aus ihrer Jugend", "verkaufte der Bauer seine letzten {k} Kühe",
            "entdeckten Taucher ein altes Schiff", "musste {name} ins Krankenhaus", "öffnet die Ausstellung ihre Türen",
            "wollte niemand die Verantwortung übernehmen", "haben beide Länder einen Vertrag unterzeichnet",
            "schrieb {name} einen langen Brief an seine Schwester",
        ],
        [
            ".", ", obwohl viele davon abgeraten hatten.", ", weil das Geld nicht reichte.",
            ", sagte ein Sprecher am Dienstag.", ", wie die Zeitung berichtete.", ", und niemand wurde verletzt.",
            ", ohne lange darüber nachzudenken.", ", damit die Bürger besser informiert sind.",
            ", was viele Besucher freute.", ", bevor die Sonne unterging.",
            ", nachdem die Verhandlungen gescheitert waren.", " - ein Erfolg, mit dem keiner gerechnet hatte.",
            ", um die Kosten zu senken.", "; nun soll es bald eine Lösung geben.", ", als der Winter kam.",
            " und kehrte erst {k} Tage später zurück.",
        ],
    ),
    "French": (
        [
            "Hier soir", "Selon la presse", "Depuis {n} ans", "À {city}", "Pendant les vacances", "Malgré la pluie",
            "Le mois dernier", "Comme prévu",
        ],
        [
            ", {name} a visité le nouveau musée", ", le gouvernement a présenté son projet de loi",
            ", {n} personnes ont manifesté devant la mairie", ", l'équipe a perdu son dernier match",
            ", le prix du pain a augmenté de {k} pour cent", ", les enfants jouent dans la cour de l'école",
            ", une entreprise cherche {n} ouvriers", ", le train est arrivé en retard",
            ", les chercheurs ont fait une découverte étonnante",
        ],
        [
            ".", ", ce qui a surpris tout le monde.", ", mais personne n'a été blessé.",
            ", parce que le temps était mauvais.", " avant la fin de l'été.", ", a déclaré un porte-parole.",
            ", afin de réduire les coûts.", " sans attendre la réponse des voisins.",
        ],
    ),
    "Spanish": (
        [
            "Ayer por la tarde", "Según la policía", "Desde hace {n} años", "En {city}", "Durante el verano",
            "A pesar de la lluvia", "El mes pasado", "Por fin",
        ],
        [
            ", {name} visitó el museo nuevo", ", el gobierno presentó una ley",
            ", {n} personas protestaron en la plaza", ", el equipo perdió su último partido",
            ", el precio de la luz subió un {k} por ciento", ", los niños jugaban en el jardín",
            ", la empresa buscaba {n} trabajadores", ", el tren llegó tarde",
            ", los científicos descubrieron una planta desconocida",
        ],
        [
            ".", ", lo que sorprendió a todos.", ", pero nadie resultó herido.", ", porque hacía mal tiempo.",
            " antes de que terminara el año.", ", dijo un portavoz.", " para reducir los gastos.",
            " sin esperar la respuesta de los vecinos.",
        ],
    ),
}

# What is asked of a passage.
SUMMARIES = [
    "Summarize: {}", "Summarize: {}", "{}\n\nTL;DR", "{}\n\nWrite a summary of two sentences.",
    "Give the main points of this text:\n\n{}", "Shorten this: {}",
    "Write a headline and a short summary for this article:\n\n{}", "What is this text about?\n\n{}",
    "{}\n\nSummarize the text above for a {job}.",
]
PASSAGES = [
    "Rewrite this in simpler words:\n\n{}", "Continue this text:\n\n{}",
    "{}\n\nWrite {k} questions about this text, with answers.",
    "List all names and numbers in this text as JSON:\n\n{}", "Rewrite this text in a {trait} tone: {}",
    "{}\n\nWhat does the author want to say?", "Extract the most important words of this text, one a line:\n\n{}",
    "Is this text an opinion, a story or a report? Say why.\n\n{}", "Put this text into the past tense: {}",
    "Give this text a title and {k} tags:\n\n{}", "Rate this text from 1 to 5 and say why:\n\n{}",
]
ASKED = [
    "What does the text say about {entity}?", "Who or what is {entity}?", "what is {entity}?",
    "when does the text mention {entity}?", "Why is {entity} important here?", "How is {entity} described?",
    "what happened with {entity}?", "which role does {entity} play in this?",
]
EDITS = [
    "Fix the spelling in this text:\n\n{}", "Correct all mistakes and return only the corrected text: {}",
    "Proofread this:\n\n{}",
]

# Of functions, whose language, or variable, is at {}; and programs to be written.
CODE = [
    "Explain what this {} function does.", "Is there a mistake in this {} function? If so, fix it.",
    "Write a comment for this {} function.", "Write a test for this {} function.",
    "Rewrite this {} function with shorter names.", "Translate this {} function to JavaScript.",
    "Rename the variable {} to `value` and return the whole function.",
    "What does this {} function return for bad input? Make it safe.",
]
PROGRAMS = [
    "Write a {language} function that {task}.", "Write a {language} program that {task}.",
    "How do I write something in {language} that {task}?",
    "Write a {language} class that {task}, and show how to use it.",
]
